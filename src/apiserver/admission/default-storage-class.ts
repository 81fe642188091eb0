// Gives a new claim that names no class at all the default one. A claim that asks for the class "" asks for none and
// keeps it. Claims that are older than the default class get it from the binder.
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { effectiveDefaultClass } from '../../api/kinds/storage-class/default-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { AdmissionPlugin } from './admission.ts'

export const defaultStorageClass: AdmissionPlugin = {
  name: 'DefaultStorageClass',
  mutate({ operation, resource, subresource, object, find, list }) {
    if (operation !== 'CREATE' || subresource !== '' || resource.group !== '') return
    if (resource.plural !== 'persistentvolumeclaims' || claimClassName(object) !== undefined) return
    const classes = list('storage.k8s.io', 'storageclasses') as readonly StorageClass[]
    const { name } = effectiveDefaultClass(classes)?.metadata ?? {}
    // Asked for by name, the class is sure to be there when the claim is stored.
    if (name && find('storage.k8s.io', 'storageclasses', '', name))
      object.spec = { ...object.spec, storageClassName: name }
  },
}
