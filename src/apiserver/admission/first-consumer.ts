// Sets the condition ReadyForFirstConsumer on a new claim whose class waits for the first consumer, in the transaction that
// creates the claim. Later changes are written by the binding controller.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { conditionsWith, WAITS_FOR_FIRST_CONSUMER } from '../../api/kinds/claim/first-consumer.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { AdmissionPlugin } from './admission.ts'

export const firstConsumer: AdmissionPlugin = {
  name: 'FirstConsumer',
  mutate({ operation, resource, subresource, object, find, nowMs }) {
    if (operation !== 'CREATE' || subresource !== '' || resource.group !== '') return
    if (resource.plural !== 'persistentvolumeclaims') return
    const claim = object as PersistentVolumeClaim
    const className = claimClassName(claim)
    if (!className || claim.spec?.volumeName) return
    const storageClass = find(storageClassKind, '', className) as Readonly<StorageClass> | undefined
    if (storageClass?.volumeBindingMode !== 'WaitForFirstConsumer') return
    claim.status = { ...claim.status, conditions: conditionsWith(claim, WAITS_FOR_FIRST_CONSUMER, nowMs) }
  },
}
