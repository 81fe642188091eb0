// Test fixture: builds claims with an attributes class and a record of `stowage migrate`.
import type { Claim } from '../../bulk/index.ts'
import { encodeRecord, MIGRATE_RECORD, type MigrateRecord } from './record.ts'

interface ClaimOptions {
  name?: string
  attributesClassName?: string
  record?: MigrateRecord | string
  phase?: 'Bound' | 'Pending'
  status?: object
  metadata?: object
}
export const aClaim = ({
  name = 'c',
  attributesClassName,
  record,
  phase = 'Bound',
  status = {},
  metadata = {},
}: ClaimOptions = {}): Claim => ({
  metadata: {
    namespace: 'shop',
    name,
    uid: name,
    resourceVersion: '1',
    ...(record === undefined
      ? {}
      : { annotations: { [MIGRATE_RECORD]: typeof record === 'string' ? record : encodeRecord(record) } }),
    ...metadata,
  },
  spec: { ...(attributesClassName === undefined ? {} : { volumeAttributesClassName: attributesClassName }) },
  status: { phase, ...status },
})

export const RECORD: MigrateRecord = { id: 'm-1', from: 'silver', to: 'gold' }
