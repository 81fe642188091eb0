// Adds the protection finalizer to new claims and volumes, and to new VolumeAttributesClasses if their feature is enabled.
// When an object is deleted, its protection controller removes the finalizer once the object is no longer in use.
import type { AdmissionPlugin } from './admission.ts'

const PROTECTION_FINALIZERS: Readonly<Record<string, string>> = {
  '/persistentvolumeclaims': 'kubernetes.io/pvc-protection',
  '/persistentvolumes': 'kubernetes.io/pv-protection',
  'storage.k8s.io/volumeattributesclasses': 'kubernetes.io/vac-protection',
}

export const storageObjectInUseProtection: AdmissionPlugin = {
  name: 'StorageObjectInUseProtection',
  mutate({ operation, resource, subresource, object, gates }) {
    const protectionFinalizer = PROTECTION_FINALIZERS[`${resource.group}/${resource.plural}`]
    if (operation !== 'CREATE' || subresource !== '' || !protectionFinalizer) return
    if (resource.plural === 'volumeattributesclasses' && !gates.enabled('VolumeAttributesClass')) return
    const finalizers: readonly string[] = object.metadata.finalizers ?? []
    if (!finalizers.includes(protectionFinalizer)) object.metadata.finalizers = [...finalizers, protectionFinalizer]
  },
}
