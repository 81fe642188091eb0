// Builds provision requests for tests from the fields that a test sets.
import type { PersistentVolumeClaimSpec } from '../../../api/kinds/claim/claim-schema.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import type { ProvisionRequest } from '../provisioner.ts'

export interface RequestFields {
  readonly parameters?: Record<string, string>
  readonly spec?: Partial<PersistentVolumeClaimSpec>
  readonly storageClass?: Partial<StorageClass>
  readonly volumeName?: string
  readonly selectedNode?: string
  readonly size?: string
}

export const aRequest = (fields: RequestFields = {}): ProvisionRequest => ({
  claim: {
    metadata: { namespace: 'shop', name: 'orders', uid: 'u-1', resourceVersion: '1' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: fields.size ?? '1Gi' } },
      storageClassName: 'fast',
      ...fields.spec,
    },
  },
  storageClass: {
    metadata: { name: 'fast' },
    provisioner: 'example.com/tiers',
    ...(fields.parameters ? { parameters: fields.parameters } : {}),
    ...fields.storageClass,
  },
  volumeName: fields.volumeName ?? 'pvc-u-1',
  selectedNode: fields.selectedNode,
})
