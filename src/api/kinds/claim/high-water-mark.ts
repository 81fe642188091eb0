// spec.allocatedResources.storage of a claim: the largest size that it ever requested (iops and throughput are in
// retained-io.ts). Only the server sets it; values sent by clients are ignored. Quota charges it, so raising and lowering
// a request never frees quota. The mark rises and never falls, except with --expansion-quota=actual.
//   request   10Gi  20Gi  15Gi  30Gi
//   mark      10Gi  20Gi  20Gi  30Gi
import type { RuleContext } from '../../kind.ts'
import { compareQuantities } from '../../quantity.ts'
import { amountOf } from '../shared/provisioned-io.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from './claim-schema.ts'

/** While the gate is off, claims get no new mark; an existing mark stays and keeps rising. */
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
 * With --expansion-quota=actual, lowers the mark to the size of the volume once no expansion is in progress. A controller
 * writes the size into status.allocatedResources, conditional on the version that it read, before it calls the driver,
 * and removes it only after the final response of the driver. While the gate is off this is not recorded, so the size is
 * not certain. Quota keeps charging the mark and needs no knowledge of this mode.
 *   request    100  20         20           20
 *   allocated   –   100 fails  20 running   20
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
  const allocated = amountOf(status?.allocatedResources, 'storage') ?? '0'
  return (
    status?.phase === 'Bound' &&
    status.allocatedResourceStatuses?.storage === undefined &&
    compareQuantities(storageRequest(spec) ?? '0', capacity) <= 0 &&
    compareQuantities(allocated, capacity) <= 0
  )
}
