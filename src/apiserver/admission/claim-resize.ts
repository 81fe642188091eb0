// A claim may grow only once it is bound and only if its class says so. Shrinking is judged by the claim's
// own rules (a request may be lowered down to what the volume has).

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
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
    const storageClass =
      className && className === classOf(old as PersistentVolumeClaim)
        ? find('storage.k8s.io', 'storageclasses', '', className)
        : undefined
    if (storageClass?.allowVolumeExpansion !== true) {
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

/** The annotation from before the field existed still wins over it. */
const classOf = (claim: PersistentVolumeClaim): string | undefined =>
  claim.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? claim.spec?.storageClassName
