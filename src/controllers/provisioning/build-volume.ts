// Builds the PersistentVolume of a provisioned volume from the claim, the class and the new volume that the storage
// returned. Pure. check-volume.ts checks whether it satisfies the claim.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import type { NewVolume, ProvisionRequest } from './provisioner.ts'

export function buildVolume(
  { claim, storageClass, volumeName }: ProvisionRequest,
  newVolume: NewVolume,
  provisioner: { readonly provisionerName: string; readonly finalizer: string },
): PersistentVolume {
  const { reclaimPolicy = 'Delete', mountOptions } = storageClass
  const spec = {
    accessModes: [...(claim.spec?.accessModes ?? [])],
    volumeMode: claim.spec?.volumeMode ?? 'Filesystem',
    persistentVolumeReclaimPolicy: reclaimPolicy,
    ...(mountOptions && mountOptions.length > 0 ? { mountOptions: [...mountOptions] } : {}),
    ...newVolume.spec,
    storageClassName: claimClassName(claim) ?? '',
    claimRef: claimRefOf(claim),
  }
  return {
    metadata: {
      name: volumeName,
      ...(newVolume.labels ? { labels: { ...newVolume.labels } } : {}),
      annotations: { ...omitSecretReferences(newVolume.annotations), [PROVISIONED_BY]: provisioner.provisionerName },
      ...(spec.persistentVolumeReclaimPolicy === 'Delete' ? { finalizers: [provisioner.finalizer] } : {}),
    },
    spec,
  }
}

const claimRefOf = ({ metadata: { namespace, name, uid, resourceVersion } }: Readonly<PersistentVolumeClaim>) => ({
  kind: 'PersistentVolumeClaim',
  apiVersion: 'v1',
  namespace,
  name,
  uid,
  resourceVersion,
})

/** Annotations that are omitted, because users who can read volumes must not know where credentials are stored. */
const SECRET_REFERENCES = /^volume\.kubernetes\.io\/(provisioner-deletion|controller-modify)-secret-(name|namespace)$/

const omitSecretReferences = (annotations: NewVolume['annotations'] = {}) =>
  Object.fromEntries(Object.entries(annotations).filter(([name]) => !SECRET_REFERENCES.test(name)))
