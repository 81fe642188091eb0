// Claims for which no free volume was found, indexed so that a volume that becomes free finds the claim it satisfies.
// Claims with equal requirements form one group: placing a volume costs the number of groups, not of claims.
import { formatLabelSelector } from '../../api/selectors.ts'
import type { ObjectKey } from '../../client/index.ts'
import { satisfies } from '../../volumes/choose-volume.ts'
import { type ClaimRequirements, matchKey, type VolumeCandidate } from '../../volumes/matching.ts'
import { GroupedLists } from './grouped-lists.ts'

export interface WaitingClaims {
  /** `since` orders the claims: RFC 3339 text sorts by time. */
  add(requirements: ClaimRequirements, since: string): void
  remove(claimKey: ObjectKey): void
  /** Removes and returns the claim that has waited longest of those the volume satisfies. */
  take(candidate: VolumeCandidate): ObjectKey | undefined
  readonly size: number
}

interface WaitingClaim {
  readonly requirements: ClaimRequirements
  readonly since: string
}

/** At most one entry per unbound claim of the cache. */
export function createWaitingClaims(): WaitingClaims {
  const groups = new GroupedLists<string, WaitingClaim>(byAge)
  const byKey = new Map<ObjectKey, WaitingClaim>()

  function remove(claimKey: ObjectKey): void {
    const one = byKey.get(claimKey)
    if (!one) return
    byKey.delete(claimKey)
    groups.remove(matchKey(one.requirements), groupOf(one.requirements), one)
  }

  return {
    get size() {
      return byKey.size
    },
    add(requirements, since) {
      remove(requirements.claimKey)
      const one = { requirements, since }
      byKey.set(requirements.claimKey, one)
      groups.add(matchKey(requirements), groupOf(requirements), one)
    },
    remove,
    take(candidate) {
      let oldest: WaitingClaim | undefined
      for (const [, { first }] of groups.groups(matchKey(candidate))) {
        if (!first || (oldest && byAge(oldest, first) < 0)) continue
        if (satisfies(candidate, first.requirements)) oldest = first
      }
      if (oldest) remove(oldest.requirements.claimKey)
      return oldest?.requirements.claimKey
    },
  }
}

const groupOf = ({ size, modes, selector }: ClaimRequirements): string =>
  `${size} ${modes} ${selector ? formatLabelSelector(selector) : '*'}`

function byAge(a: WaitingClaim, b: WaitingClaim): number {
  if (a.since !== b.since) return a.since < b.since ? -1 : 1
  const [first, second] = [a.requirements.claimKey, b.requirements.claimKey]
  return first < second ? -1 : first > second ? 1 : 0
}
