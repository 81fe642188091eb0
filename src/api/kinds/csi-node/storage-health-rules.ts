// Validates the storage health that a node reports in the status of its CSINode.
import type { FieldErrors } from '../../field-errors.ts'
import { validateCsiDriverName } from '../csi-driver/csi-driver-name.ts'
import { conditionReasonProblems } from '../shared/condition-reason.ts'
import type { CSINode } from './csi-node-schema.ts'

type StorageHealth = NonNullable<NonNullable<CSINode['status']>['storageHealth']>[number]
type HealthCondition = NonNullable<StorageHealth['healthConditions']>[number]

const CONDITIONS_MAX = 16
const REASON_BYTES_MAX = 256
const MESSAGE_BYTES_MAX = 1024
const STATUSES: readonly string[] = ['StorageDegraded', 'StorageUnreachable']
const ACCESS_MODES: readonly string[] = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']
const VOLUME_MODES: readonly string[] = ['Filesystem', 'Block']

export function validateStorageHealth(reports: readonly StorageHealth[] = [], errors: FieldErrors): void {
  const names = new Set<string>()
  for (const [index, { name, healthConditions = [] }] of reports.entries()) {
    const field = `status.storageHealth[${index}]`
    if (names.has(name)) errors.duplicate(field, name)
    names.add(name)
    validateCsiDriverName(name, `${field}.name`, errors)
    if (healthConditions.length > CONDITIONS_MAX) {
      errors.tooMany(`${field}.healthConditions`, healthConditions.length, CONDITIONS_MAX)
      continue
    }
    for (const [conditionIndex, condition] of healthConditions.entries()) {
      validateCondition(condition, `${field}.healthConditions[${conditionIndex}]`, errors)
    }
  }
}

function validateCondition(condition: HealthCondition, field: string, errors: FieldErrors): void {
  const { status, reason, message = '', accessMode, volumeMode } = condition
  if (!STATUSES.includes(status)) errors.notSupported(`${field}.status`, status, STATUSES)
  if (reason === '') errors.required(`${field}.reason`)
  else errors.invalidAll(`${field}.reason`, reason, conditionReasonProblems(reason))
  if (Buffer.byteLength(reason) > REASON_BYTES_MAX) errors.tooLong(`${field}.reason`, REASON_BYTES_MAX)
  if (Buffer.byteLength(message) > MESSAGE_BYTES_MAX) errors.tooLong(`${field}.message`, MESSAGE_BYTES_MAX)
  if (accessMode !== undefined && !ACCESS_MODES.includes(accessMode)) {
    errors.notSupported(`${field}.accessMode`, accessMode, ACCESS_MODES)
  }
  if (volumeMode !== undefined && !VOLUME_MODES.includes(volumeMode)) {
    errors.notSupported(`${field}.volumeMode`, volumeMode, VOLUME_MODES)
  }
}
