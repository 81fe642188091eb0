// Sets the default class on a new claim without a class. A claim opts out of dynamic provisioning with
// storageClassName "". The binding controller sets the class of claims that were created before the default class.
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { findDefaultClass } from '../../api/kinds/storage-class/default-class.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { AdmissionPlugin } from './admission.ts'

export const defaultStorageClass: AdmissionPlugin = {
  name: 'DefaultStorageClass',
  mutate({ operation, resource, subresource, object, find, list }) {
    if (operation !== 'CREATE' || subresource !== '' || resource.group !== '') return
    if (resource.plural !== 'persistentvolumeclaims' || claimClassName(object) !== undefined) return
    const { name } = findDefaultClass(list(storageClassKind))?.metadata ?? {}
    // `find` makes the store repeat the transaction if the class is deleted before the claim is stored.
    if (name && find(storageClassKind, '', name)) object.spec = { ...object.spec, storageClassName: name }
  },
}
