// Wakes claims that wait for a volume: each volume that becomes free wakes one claim, the one that has waited longest
// of those it satisfies. If that claim's reconcile ends without binding it, the volume wakes the next one. So 10,000 new
// volumes cause 10,000 reconciles, and no waiting claim is missed.
import type { ObjectKey } from '../../client/index.ts'
import type { ClaimRequirements, VolumeCandidate } from '../../volumes/matching.ts'
import type { VolumeIndex } from './volume-index.ts'
import { createWaitingClaims } from './waiting-claims.ts'

export interface ClaimWaker {
  /** From here on the claim looks for a volume itself. */
  reconcileStarted(claimKey: ObjectKey): void
  /** No free volume fits. Call it synchronously after the search: a volume that became free between would be missed. */
  addWaiting(requirements: ClaimRequirements, since: string): void
  /** The volume that the claim was woken for, if still free, wakes the next claim. */
  reconcileEnded(claimKey: ObjectKey): void
  /** Runs until the returned function is called. */
  start(): () => void
}

export function createClaimWaker(index: VolumeIndex, wake: (claimKey: ObjectKey) => void): ClaimWaker {
  const waiting = createWaitingClaims()
  /** The volume that each woken claim was woken for, before its reconcile and during it. */
  const wokenFor = new Map<ObjectKey, string>()
  const reconcilingFor = new Map<ObjectKey, string>()

  function wakeFor(candidate: VolumeCandidate): void {
    const claimKey = waiting.take(candidate)
    if (claimKey === undefined) return // it stays in the index
    wokenFor.set(claimKey, candidate.volume.metadata.name)
    wake(claimKey)
  }

  return {
    reconcileStarted(claimKey) {
      waiting.remove(claimKey)
      const name = wokenFor.get(claimKey)
      if (name === undefined) return
      wokenFor.delete(claimKey)
      reconcilingFor.set(claimKey, name)
    },
    addWaiting: (requirements, since) => waiting.add(requirements, since),
    reconcileEnded(claimKey) {
      const name = reconcilingFor.get(claimKey)
      if (name === undefined) return
      reconcilingFor.delete(claimKey)
      const candidate = index.candidate(name)
      if (candidate) wakeFor(candidate)
    },
    start: () => index.follow(wakeFor),
  }
}
