// Wakes claims that wait for a volume. Each volume that becomes free wakes one claim: of the claims that it satisfies, the
// one that has waited longest. If the reconcile of that claim does not bind the volume, the volume wakes the next claim.
import type { ObjectKey } from '../../client/index.ts'
import type { ClaimRequirements, VolumeCandidate } from '../../volumes/matching.ts'
import type { VolumeIndex } from './volume-index.ts'
import { createWaitingClaims } from './waiting-claims.ts'

export interface ClaimWaker {
  /** Removes the claim from the waiting claims. */
  reconcileStarted(claimKey: ObjectKey): void
  /** Must be called synchronously after an unsuccessful search, so that no volume becomes free in between. */
  addWaiting(requirements: ClaimRequirements, waitingSince: string): void
  /** If the volume that the claim was woken for is still free, it wakes the next claim. */
  reconcileEnded(claimKey: ObjectKey): void
  /** Runs until the returned function is called. */
  start(): () => void
}

export function createClaimWaker(index: VolumeIndex, wake: (claimKey: ObjectKey) => void): ClaimWaker {
  const waiting = createWaitingClaims()
  /** Volume names by the claim that they have woken, before its reconcile starts. */
  const wokenFor = new Map<ObjectKey, string>()
  /** Volume names by the claim that they have woken, during its reconcile. */
  const reconcilingFor = new Map<ObjectKey, string>()

  function wakeFor(candidate: VolumeCandidate): void {
    const claimKey = waiting.take(candidate)
    if (claimKey === undefined) return
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
    addWaiting: (requirements, waitingSince) => waiting.add(requirements, waitingSince),
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
