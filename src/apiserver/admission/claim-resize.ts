// Lets a claim grow only if it is bound and its class allows expansion. Shrinking is validated by the claim's own
// rules, which let a request be lowered down to the capacity of the volume.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { compareQuantities } from '../../api/quantity.ts'
import { forbidden } from '../../api/status-error.ts'
import type { AdmissionPlugin } from './admission.ts'

export const claimResize: AdmissionPlugin = {
  name: 'PersistentVolumeClaimResize',
  validate({ operation, resource, subresource, name, object, old, find }) {
    if (
      operation !== 'UPDATE' ||
      subresource !== '' ||
      resource.group !== '' ||
      resource.plural !== 'persistentvolumeclaims'
    ) {
      return undefined
    }
    const wanted = requestOf(object)
    const before = requestOf(old as PersistentVolumeClaim)
    if (wanted === undefined || before === undefined || compareQuantities(wanted, before) <= 0) return undefined
    if (old?.status?.phase !== 'Bound') {
      throw forbidden(resource, name, 'Only bound persistent volume claims can be expanded')
    }
    const className = classOf(object)
    const isSameClass = className && className === classOf(old as PersistentVolumeClaim)
    if (!isSameClass || find(storageClassKind, '', className)?.allowVolumeExpansion !== true) {
      throw forbidden(
        resource,
        name,
        'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
      )
    }
    return undefined
  },
}

const requestOf = (claim: PersistentVolumeClaim): string | undefined => claim.spec?.resources?.requests?.storage

/** The beta annotation takes precedence over the field, as in Kubernetes. */
const classOf = (claim: PersistentVolumeClaim): string | undefined =>
  claim.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? claim.spec?.storageClassName
