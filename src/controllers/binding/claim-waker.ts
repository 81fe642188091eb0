// Brings volumes that become free to the claims that wait for one: each volume wakes a single claim. If that claim
// ends its pass without it, the volume goes on to the next; so ten thousand volumes wake ten thousand claims once
// each, and none is forgotten.
import type { ObjectKey } from '../../client/index.ts'
import type { ClaimRequirements, VolumeCandidate } from '../../volumes/matching.ts'
import type { VolumeIndex } from './volume-index.ts'
import { createWaitingClaims } from './waiting-claims.ts'

export interface ClaimWaker {
  /** A pass over the claim begins: it looks for itself now. */
  reconcileStarted(claimKey: ObjectKey): void
  /** Nothing that is free would do. Said right after looking, so that nothing can come in between. */
  addWaiting(wish: ClaimRequirements, since: string): void
  /** The pass is over: what was held for the claim and is still free goes to the next. */
  reconcileEnded(claimKey: ObjectKey): void
  /** Works until the returned function is called. */
  start(): () => void
}

export function createClaimWaker(index: VolumeIndex, wake: (claimKey: ObjectKey) => void): ClaimWaker {
  const waiting = createWaitingClaims()
  /** The volume each woken claim was woken for, before its pass and during it. */
  const wokenFor = new Map<ObjectKey, string>()
  const reconcilingFor = new Map<ObjectKey, string>()

  function offer(found: VolumeCandidate): void {
    const claimKey = waiting.take(found)
    if (claimKey === undefined) return // it stays on its shelf for whoever comes
    wokenFor.set(claimKey, found.volume.metadata.name ?? '')
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
    addWaiting: (wish, since) => waiting.add(wish, since),
    reconcileEnded(claimKey) {
      const name = reconcilingFor.get(claimKey)
      if (name === undefined) return
      reconcilingFor.delete(claimKey)
      const still = index.candidate(name)
      if (still) offer(still)
    },
    start: () => index.follow(offer),
  }
}
