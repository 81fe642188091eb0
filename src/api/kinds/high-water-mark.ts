// spec.allocatedResources of a claim: the largest storage it ever asked for, kept by the server alone.
// Quota charges it, so growing and shrinking quickly never frees quota. It rises and never falls; what a client
// sends there is ignored, and it never makes a write fail.
//   request   10Gi  20Gi  15Gi  30Gi
//   mark      10Gi  20Gi  20Gi  30Gi
import { compareQuantities } from '../quantity.ts'
import type { PersistentVolumeClaimSpec } from '../types/claim.ts'
import { amountOf } from './provisioned-io.ts'

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
