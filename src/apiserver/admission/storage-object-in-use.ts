// Adds the protection finalizer to new claims, volumes and attributes classes.
// The protection controllers remove it once the object is being deleted and no longer in use.
import type { AdmissionPlugin } from './admission.ts'

const FINALIZERS: Record<string, string> = {
  '/persistentvolumeclaims': 'kubernetes.io/pvc-protection',
  '/persistentvolumes': 'kubernetes.io/pv-protection',
  'storage.k8s.io/volumeattributesclasses': 'kubernetes.io/vac-protection',
}

export const storageObjectInUseProtection: AdmissionPlugin = {
  name: 'StorageObjectInUseProtection',
  mutate({ operation, resource, subresource, object, gates }) {
    const finalizer = FINALIZERS[`${resource.group}/${resource.plural}`]
    if (operation !== 'CREATE' || subresource !== '' || !finalizer) return
    if (resource.plural === 'volumeattributesclasses' && !gates.enabled('VolumeAttributesClass')) return
    const finalizers: string[] = object.metadata.finalizers ?? []
    if (!finalizers.includes(finalizer)) object.metadata.finalizers = [...finalizers, finalizer]
  },
}
