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
  /** Whether the claim waits for a volume, or a volume has woken it. */
  has(claimKey: ObjectKey): boolean
  /** Runs until the returned function is called. */
  start(): () => void
}

export function createClaimWaker(index: VolumeIndex, wake: (claimKey: ObjectKey) => void): ClaimWaker {
  const waitingClaims = createWaitingClaims()
  /** Volume names by the claim that they have woken, before its reconcile starts. */
  const volumesOfWokenClaims = new Map<ObjectKey, string>()
  /** Volume names by the claim that they have woken, during its reconcile. */
  const volumesOfReconcilingClaims = new Map<ObjectKey, string>()

  function wakeFor(candidate: VolumeCandidate): void {
    const claimKey = waitingClaims.take(candidate)
    if (claimKey === undefined) return
    volumesOfWokenClaims.set(claimKey, candidate.volume.metadata.name)
    wake(claimKey)
  }

  return {
    reconcileStarted(claimKey) {
      waitingClaims.remove(claimKey)
      const name = volumesOfWokenClaims.get(claimKey)
      if (name === undefined) return
      volumesOfWokenClaims.delete(claimKey)
      volumesOfReconcilingClaims.set(claimKey, name)
    },
    addWaiting: (requirements, waitingSince) => waitingClaims.add(requirements, waitingSince),
    reconcileEnded(claimKey) {
      const name = volumesOfReconcilingClaims.get(claimKey)
      if (name === undefined) return
      volumesOfReconcilingClaims.delete(claimKey)
      const candidate = index.candidate(name)
      if (candidate) wakeFor(candidate)
    },
    has: (claimKey) => waitingClaims.has(claimKey) || volumesOfWokenClaims.has(claimKey),
    start: () => index.follow(wakeFor),
  }
}
