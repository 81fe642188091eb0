// Allows expanding a claim only if it is bound and its class allows expansion. Lower requests are validated by the rules
// of the claim kind.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { compareQuantities } from '../../api/quantity.ts'
import { forbidden } from '../../api/status-error.ts'
import type { AdmissionPlugin } from './admission.ts'

export const claimResize: AdmissionPlugin = {
  name: 'PersistentVolumeClaimResize',
  validate({ operation, resource, subresource, name, object, oldObject, find }) {
    if (
      operation !== 'UPDATE' ||
      subresource !== '' ||
      resource.group !== '' ||
      resource.plural !== 'persistentvolumeclaims'
    ) {
      return undefined
    }
    const newRequest = storageRequestOf(object)
    const oldRequest = storageRequestOf(oldObject as PersistentVolumeClaim)
    if (newRequest === undefined || oldRequest === undefined || compareQuantities(newRequest, oldRequest) <= 0)
      return undefined
    if (oldObject?.status?.phase !== 'Bound') {
      throw forbidden(resource, name, 'Only bound persistent volume claims can be expanded')
    }
    const className = storageClassOf(object)
    const isSameClass = className && className === storageClassOf(oldObject as PersistentVolumeClaim)
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

const storageRequestOf = (claim: PersistentVolumeClaim): string | undefined => claim.spec?.resources?.requests?.storage

/** The beta annotation takes precedence over the field, as in Kubernetes. */
const storageClassOf = (claim: PersistentVolumeClaim): string | undefined =>
  claim.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] ?? claim.spec?.storageClassName
