// The PersistentVolume object of what the storage made: what claim and class say, with what only the storage knows laid
// over it. Pure. Whether it is what was asked for is check-volume.ts.

import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import type { NewVolume, ProvisionRequest } from './provisioner.ts'

export function buildVolume(
  { claim, storageClass, volumeName }: ProvisionRequest,
  made: NewVolume,
  by: { readonly provisionerName: string; readonly finalizer: string },
): PersistentVolume {
  const { reclaimPolicy = 'Delete', mountOptions } = storageClass
  const spec = {
    accessModes: [...(claim.spec?.accessModes ?? [])],
    volumeMode: claim.spec?.volumeMode ?? 'Filesystem',
    persistentVolumeReclaimPolicy: reclaimPolicy,
    ...(mountOptions && mountOptions.length > 0 ? { mountOptions: [...mountOptions] } : {}),
    ...made.spec,
    storageClassName: claimClassName(claim) ?? '',
    claimRef: claimRefOf(claim),
  }
  return {
    metadata: {
      name: volumeName,
      ...(made.labels ? { labels: { ...made.labels } } : {}),
      annotations: { ...withoutSecretReferences(made.annotations), [PROVISIONED_BY]: by.provisionerName },
      ...(spec.persistentVolumeReclaimPolicy === 'Delete' ? { finalizers: [by.finalizer] } : {}),
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

/** Who may read a volume must not learn where its credentials are. */
const SECRET_REFERENCES = /^volume\.kubernetes\.io\/(provisioner-deletion|controller-modify)-secret-(name|namespace)$/

const withoutSecretReferences = (annotations: NewVolume['annotations'] = {}) =>
  Object.fromEntries(Object.entries(annotations).filter(([name]) => !SECRET_REFERENCES.test(name)))
