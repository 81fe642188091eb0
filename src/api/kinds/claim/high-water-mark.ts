// spec.allocatedResources of a claim: the largest storage it ever asked for, kept by the server alone (iops and throughput
// are in kept-io.ts).
// Quota charges it, so growing and shrinking quickly never frees quota. It rises and, unless the operator wants it to
// follow the real size, never falls; what a client sends there is ignored, and it never makes a write fail.
//   request   10Gi  20Gi  15Gi  30Gi
//   mark      10Gi  20Gi  20Gi  30Gi
import type { RuleContext } from '../../kind.ts'
import { compareQuantities } from '../../quantity.ts'
import { amountOf } from '../shared/provisioned-io.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from './claim-schema.ts'

/** While the gate is off no claim gets a mark, but one that exists stays and keeps rising. */
export function withHighWaterMark(
  spec: PersistentVolumeClaimSpec,
  stored: PersistentVolumeClaimSpec | undefined,
  { gateOn }: { gateOn: boolean },
): PersistentVolumeClaimSpec {
  const mark = markOf(spec, stored, gateOn)
  if (mark !== undefined) return { ...spec, allocatedResources: { storage: mark } }
  const { allocatedResources: _ignored, ...rest } = spec
  return rest
}

function markOf(
  spec: PersistentVolumeClaimSpec,
  stored: PersistentVolumeClaimSpec | undefined,
  gateOn: boolean,
): string | undefined {
  const storedMark = amountOf(stored?.allocatedResources, 'storage')
  if (!gateOn && storedMark === undefined) return undefined
  return larger(storedMark ?? storageRequest(stored), storageRequest(spec))
}

const storageRequest = (spec: PersistentVolumeClaimSpec | undefined): string | undefined =>
  amountOf(spec?.resources?.requests, 'storage')

function larger(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return compareQuantities(a, b) >= 0 ? a : b
}

/**
 * Lets the mark fall to the size the volume is known to have (--expansion-quota=actual). Known it is when nothing is
 * under way: whoever asks a driver for more first writes the size into status.allocatedResources, conditional on the
 * version it read, and takes it back only after the driver's last word. While the gate is off that is not recorded,
 * and nothing is known. The mark stays what is charged, so that whoever counts need not know of this.
 *   request    100  20         20           20
 *   allocated   –   100 fails  20 at work   20
 *   capacity    10  10         10           20
 *   mark       100  100        100          20
 */
export function withProvenMark(
  claim: PersistentVolumeClaim,
  { expansionQuota, gates }: Pick<RuleContext, 'expansionQuota' | 'gates'>,
): PersistentVolumeClaimSpec {
  const { spec = {}, status = {} } = claim
  const mark = amountOf(spec.allocatedResources, 'storage')
  const capacity = amountOf(status.capacity, 'storage')
  if (expansionQuota !== 'actual' || !gates.enabled('RecoverExpansionFailure')) return spec
  if (mark === undefined || capacity === undefined) return spec
  if (!isSettled(claim, capacity) || compareQuantities(mark, capacity) <= 0) return spec
  return { ...spec, allocatedResources: { storage: capacity } }
}

function isSettled({ spec, status }: PersistentVolumeClaim, capacity: string): boolean {
  const tried = amountOf(status?.allocatedResources, 'storage') ?? '0'
  return (
    status?.phase === 'Bound' &&
    status.allocatedResourceStatuses?.storage === undefined &&
    compareQuantities(storageRequest(spec) ?? '0', capacity) <= 0 &&
    compareQuantities(tried, capacity) <= 0
  )
}
