// Prepares and validates the status of a claim, which controllers write through /status. Drops fields whose feature gate is
// off unless the stored claim has them already. Of spec, a status write updates only allocatedResources, which quota charges.
import type { FieldErrors } from '../../field-errors.ts'
import type { RuleContext } from '../../kind.ts'
import { qualifiedNameProblems } from '../../names.ts'
import { quantitySign, quantityToBytes } from '../../quantity.ts'
import { conditionReasonProblems } from '../shared/condition-reason.ts'
import { IO_RESOURCES, isIoResource } from '../shared/provisioned-io.ts'
import { ALLOCATED_RESOURCE_STATUSES, type PersistentVolumeClaim } from './claim-schema.ts'
import { withProvenMark } from './high-water-mark.ts'
import { withRetainedIo } from './retained-io.ts'

export function prepareClaimStatus(
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  context: RuleContext,
): void {
  const { gates } = context
  const status = { ...next.status }
  status.phase ??= 'Pending'
  const stored = old.status ?? {}
  if (!gates.enabled('VolumeAttributesClass')) {
    if (stored.currentVolumeAttributesClassName === undefined) delete status.currentVolumeAttributesClassName
    if (stored.modifyVolumeStatus === undefined) delete status.modifyVolumeStatus
  }
  const keeps = (name: string, storedList: Record<string, unknown> = {}): boolean =>
    gates.enabled(isIoResource(name) ? 'VolumeProvisionedIO' : 'RecoverExpansionFailure') ||
    Object.keys(storedList).some((other) => isIoResource(other) === isIoResource(name))
  for (const part of ['allocatedResources', 'allocatedResourceStatuses'] as const) {
    const kept = Object.entries(status[part] ?? {}).filter(([name]) => keeps(name, stored[part]))
    if (kept.length > 0) Object.assign(status, { [part]: Object.fromEntries(kept) })
    else delete status[part]
  }
  next.status = status
  if (!next.spec) return
  next.spec = withProvenMark(next, context)
  next.spec = withRetainedIo(next, old)
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
  const io = gates.enabled('VolumeProvisionedIO') || usesIo(old)
  for (const [name, value] of Object.entries(status.allocatedResourceStatuses ?? {})) {
    validateResourceName(name, { field: 'status.allocatedResourceStatuses', io }, errors)
    if (!STATUSES.includes(value)) errors.notSupported('status.allocatedResourceStatuses', name, STATUSES)
  }
  for (const [name, amount] of Object.entries(status.allocatedResources ?? {})) {
    if (validateResourceName(name, { field: 'status.allocatedResources', io }, errors)) {
      validateAmount(amount, `status.allocatedResources[${name}]`, errors)
    }
  }
}

const STATUSES: readonly string[] = [...ALLOCATED_RESOURCE_STATUSES].sort()

/** Unprefixed and kubernetes.io names must be known; names with another prefix are accepted. */
function validateResourceName(
  name: string,
  { field, io }: { field: string; io: boolean },
  errors: FieldErrors,
): boolean {
  const problems = qualifiedNameProblems(name)
  if (problems.length > 0) {
    errors.invalidAll(field, name, problems)
    return false
  }
  const ours = !name.includes('/') || name.includes('kubernetes.io/')
  const known = io ? ['storage', ...IO_RESOURCES] : ['storage']
  if (!ours || known.includes(name)) return true
  errors.notSupported(field, name, known)
  return false
}

function validateAmount(amount: string, field: string, errors: FieldErrors): void {
  if (quantitySign(amount) < 0)
    errors.invalid(field, Number(quantityToBytes(amount)), 'must be a valid resource quantity')
}

const usesIo = ({ status }: PersistentVolumeClaim): boolean =>
  Object.keys({ ...status?.allocatedResources, ...status?.allocatedResourceStatuses }).some(isIoResource)
