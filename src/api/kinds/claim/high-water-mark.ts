// Maintains the high-water mark of a claim in spec.allocatedResources.storage: the largest size that it has requested.
// Values from clients are ignored. Quota charges the mark, so that lowering a request does not free quota. The mark falls
// only with --expansion-quota=actual.
//   request   10Gi  20Gi  15Gi  30Gi
//   mark      10Gi  20Gi  20Gi  30Gi
import type { RuleContext } from '../../kind.ts'
import { compareQuantities } from '../../quantity.ts'
import { amountOf } from '../shared/provisioned-io.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from './claim-schema.ts'

/** Sets the mark. While the feature gate is disabled, no new mark is set, but an existing mark can rise. */
export function withHighWaterMark(
  spec: PersistentVolumeClaimSpec,
  storedSpec: PersistentVolumeClaimSpec | undefined,
  { isEnabled }: { isEnabled: boolean },
): PersistentVolumeClaimSpec {
  const mark = computeMark(spec, storedSpec, isEnabled)
  if (mark !== undefined) return { ...spec, allocatedResources: { storage: mark } }
  const { allocatedResources: _ignored, ...withoutMark } = spec
  return withoutMark
}

function computeMark(
  spec: PersistentVolumeClaimSpec,
  storedSpec: PersistentVolumeClaimSpec | undefined,
  isEnabled: boolean,
): string | undefined {
  const storedMark = amountOf(storedSpec?.allocatedResources, 'storage')
  if (!isEnabled && storedMark === undefined) return undefined
  return maximum(storedMark ?? storageRequest(storedSpec), storageRequest(spec))
}

const storageRequest = (spec: PersistentVolumeClaimSpec | undefined): string | undefined =>
  amountOf(spec?.resources?.requests, 'storage')

function maximum(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return compareQuantities(a, b) >= 0 ? a : b
}

/**
 * With --expansion-quota=actual, lowers the mark to the volume's size when no expansion is in progress. While the
 * feature gate is disabled, the mark is not lowered.
 *   request    100  20         20           20
 *   allocated   –   100 fails  20 running   20
 *   capacity    10  10         10           20
 *   mark       100  100        100          20
 */
export function withLoweredMark(
  claim: PersistentVolumeClaim,
  { expansionQuota, gates }: Pick<RuleContext, 'expansionQuota' | 'gates'>,
): PersistentVolumeClaimSpec {
  const { spec = {}, status = {} } = claim
  const mark = amountOf(spec.allocatedResources, 'storage')
  const capacity = amountOf(status.capacity, 'storage')
  if (expansionQuota !== 'actual' || !gates.enabled('RecoverExpansionFailure')) return spec
  if (mark === undefined || capacity === undefined) return spec
  if (!isExpansionFinished(claim, capacity) || compareQuantities(mark, capacity) <= 0) return spec
  return { ...spec, allocatedResources: { storage: capacity } }
}

function isExpansionFinished({ spec, status }: PersistentVolumeClaim, capacity: string): boolean {
  const allocatedSize = amountOf(status?.allocatedResources, 'storage') ?? '0'
  return (
    status?.phase === 'Bound' &&
    status.allocatedResourceStatuses?.storage === undefined &&
    compareQuantities(storageRequest(spec) ?? '0', capacity) <= 0 &&
    compareQuantities(allocatedSize, capacity) <= 0
  )
}
