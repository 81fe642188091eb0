// Prepares and validates the status of a claim, which is written through /status. Drops fields whose feature gate is
// disabled, unless the stored claim already has them. A status write also updates spec.allocatedResources and the record of
// retained iops and throughput.
import type { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { qualifiedNameProblems } from '../../names.ts'
import { quantitySign, quantityToBytes } from '../../quantity.ts'
import { conditionReasonProblems } from '../shared/condition-reason.ts'
import { IO_RESOURCES, isIoResource } from '../shared/provisioned-io.ts'
import { ALLOCATED_RESOURCE_STATUSES, type PersistentVolumeClaim } from './claim-schema.ts'
import { withLoweredMark } from './high-water-mark.ts'
import { setRetainedIo } from './retained-io.ts'

export function prepareClaimStatus(
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  context: RuleContext,
): void {
  const { gates } = context
  const status = { ...next.status }
  status.phase ??= 'Pending'
  const storedStatus = old.status ?? {}
  if (!gates.enabled('VolumeAttributesClass')) {
    if (storedStatus.currentVolumeAttributesClassName === undefined) delete status.currentVolumeAttributesClassName
    if (storedStatus.modifyVolumeStatus === undefined) delete status.modifyVolumeStatus
  }
  const shouldKeep = (name: string, storedList: Record<string, unknown> = {}): boolean =>
    gates.enabled(isIoResource(name) ? 'VolumeProvisionedIO' : 'RecoverExpansionFailure') ||
    Object.keys(storedList).some((storedName) => isIoResource(storedName) === isIoResource(name))
  for (const part of ['allocatedResources', 'allocatedResourceStatuses'] as const) {
    const keptEntries = Object.entries(status[part] ?? {}).filter(([name]) => shouldKeep(name, storedStatus[part]))
    if (keptEntries.length > 0) Object.assign(status, { [part]: Object.fromEntries(keptEntries) })
    else delete status[part]
  }
  next.status = status
  if (!next.spec) return
  next.spec = withLoweredMark(next, context)
  setRetainedIo(next, old)
}

export function validateClaimStatus(
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  errors: FieldErrors,
  { gates }: RuleContext,
): void {
  const status = next.status ?? {}
  for (const [name, amount] of Object.entries(status.capacity ?? {})) {
    validateAmount(amount, `status.capacity[${name}]`, errors)
  }
  status.healthStatus?.healthConditions?.forEach(({ reason }, index) => {
    if (reason === '') return
    const field = `status.healthStatus.healthConditions[${index}].reason`
    errors.invalidAll(field, reason, conditionReasonProblems(reason))
  })
  const allowsIo = gates.enabled('VolumeProvisionedIO') || hasIoResource(old)
  for (const [name, value] of Object.entries(status.allocatedResourceStatuses ?? {})) {
    validateAllocatedName(name, { field: 'status.allocatedResourceStatuses', allowsIo }, errors)
    if (!SUPPORTED_STATUSES.includes(value))
      errors.notSupported('status.allocatedResourceStatuses', name, SUPPORTED_STATUSES)
  }
  for (const [name, amount] of Object.entries(status.allocatedResources ?? {})) {
    if (validateAllocatedName(name, { field: 'status.allocatedResources', allowsIo }, errors)) {
      validateAmount(amount, `status.allocatedResources[${name}]`, errors)
    }
  }
}

const SUPPORTED_STATUSES: readonly string[] = [...ALLOCATED_RESOURCE_STATUSES].sort()

/** Validates that a name without a prefix, or with one that ends in kubernetes.io, is supported. Accepts all other prefixes. */
function validateAllocatedName(
  name: string,
  { field, allowsIo }: { field: string; allowsIo: boolean },
  errors: FieldErrors,
): boolean {
  const problems = qualifiedNameProblems(name)
  if (problems.length > 0) {
    errors.invalidAll(field, name, problems)
    return false
  }
  const isNative = !name.includes('/') || name.includes('kubernetes.io/')
  const supportedNames = allowsIo ? ['storage', ...IO_RESOURCES] : ['storage']
  if (!isNative || supportedNames.includes(name)) return true
  errors.notSupported(field, name, supportedNames)
  return false
}

function validateAmount(amount: string, field: string, errors: FieldErrors): void {
  if (quantitySign(amount) < 0)
    errors.invalid(field, Number(quantityToBytes(amount)), 'must be a valid resource quantity')
}

const hasIoResource = ({ status }: PersistentVolumeClaim): boolean =>
  Object.keys({ ...status?.allocatedResources, ...status?.allocatedResourceStatuses }).some(isIoResource)
