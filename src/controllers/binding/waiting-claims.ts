// Claims for which no free volume was found, so that a volume that becomes free finds the one it is for. Claims that
// ask for the very same are one demand: what a volume costs to place is the number of different demands, however many
// claims wait.
import { formatLabelSelector } from '../../api/selectors.ts'
import type { ObjectKey } from '../../client/index.ts'
import { satisfies } from '../../volumes/choose-volume.ts'
import { type ClaimRequirements, matchKey, type VolumeCandidate } from '../../volumes/matching.ts'
import { GroupedLists } from './grouped-lists.ts'

export interface WaitingClaims {
  /** `since` orders them: RFC 3339 text sorts by time. */
  add(wish: ClaimRequirements, since: string): void
  remove(claimKey: ObjectKey): void
  /** The claim that has waited longest of those the volume satisfies. It no longer waits. */
  take(offer: VolumeCandidate): ObjectKey | undefined
  readonly size: number
}

interface Waiting {
  readonly wish: ClaimRequirements
  readonly since: string
}

/** At most one entry per unbound claim of the cache. */
export function createWaitingClaims(): WaitingClaims {
  const demands = new GroupedLists<string, Waiting>(byAge)
  const waiting = new Map<ObjectKey, Waiting>()

  function remove(claimKey: ObjectKey): void {
    const one = waiting.get(claimKey)
    if (!one) return
    waiting.delete(claimKey)
    demands.remove(matchKey(one.wish), demandOf(one.wish), one)
  }

  return {
    get size() {
      return waiting.size
    },
    add(wish, since) {
      remove(wish.claimKey)
      const one = { wish, since }
      waiting.set(wish.claimKey, one)
      demands.add(matchKey(wish), demandOf(wish), one)
    },
    remove,
    take(offer) {
      let oldest: Waiting | undefined
      for (const [, { first }] of demands.groups(matchKey(offer))) {
        if (!first || (oldest && byAge(oldest, first) < 0)) continue
        if (satisfies(offer, first.wish)) oldest = first
      }
      if (oldest) remove(oldest.wish.claimKey)
      return oldest?.wish.claimKey
    },
  }
}

const demandOf = ({ size, modes, selector }: ClaimRequirements): string =>
  `${size} ${modes} ${selector ? formatLabelSelector(selector) : '*'}`

function byAge(a: Waiting, b: Waiting): number {
  if (a.since !== b.since) return a.since < b.since ? -1 : 1
  return a.wish.claimKey < b.wish.claimKey ? -1 : a.wish.claimKey > b.wish.claimKey ? 1 : 0
}
