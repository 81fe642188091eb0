// Brings volumes that become free to the claims that wait for one: each volume wakes a single claim. If that claim
// ends its pass without it, the volume goes on to the next; so ten thousand volumes wake ten thousand claims once
// each, and none is forgotten.
import type { ObjectKey } from '../../client/index.ts'
import type { Offer, Wish } from '../../volumes/claim-requirements.ts'
import type { VolumeIndex } from './volume-index.ts'
import { createWaitingClaims } from './waiting-claims.ts'

export interface Matchmaker {
  /** A pass over the claim begins: it looks for itself now. */
  begin(claimKey: ObjectKey): void
  /** Nothing that is free would do. Said right after looking, so that nothing can come in between. */
  waits(wish: Wish, since: string): void
  /** The pass is over: what was held for the claim and is still free goes to the next. */
  end(claimKey: ObjectKey): void
  /** Works until the returned function is called. */
  start(): () => void
}

export function createMatchmaker(index: VolumeIndex, wake: (claimKey: ObjectKey) => void): Matchmaker {
  const waiting = createWaitingClaims()
  /** The volume each woken claim was woken for, before its pass and during it. */
  const promised = new Map<ObjectKey, string>()
  const inHand = new Map<ObjectKey, string>()

  function offer(found: Offer): void {
    const claimKey = waiting.take(found)
    if (claimKey === undefined) return // it stays on its shelf for whoever comes
    promised.set(claimKey, found.volume.metadata.name ?? '')
    wake(claimKey)
  }

  return {
    begin(claimKey) {
      waiting.remove(claimKey)
      const name = promised.get(claimKey)
      if (name === undefined) return
      promised.delete(claimKey)
      inHand.set(claimKey, name)
    },
    waits: (wish, since) => waiting.add(wish, since),
    end(claimKey) {
      const name = inHand.get(claimKey)
      if (name === undefined) return
      inHand.delete(claimKey)
      const still = index.offered(name)
      if (still) offer(still)
    },
    start: () => index.follow(offer),
  }
}
