// Indexes the claims that no free volume satisfied, to find the claim for a volume that becomes free. Claims with equal
// requirements form one group, so the cost of a lookup depends on the number of groups, not of claims.
import { formatLabelSelector } from '../../api/selectors.ts'
import type { ObjectKey } from '../../client/index.ts'
import { meetsRequirements } from '../../volumes/choose-volume.ts'
import { type ClaimRequirements, matchKey, type VolumeCandidate } from '../../volumes/matching.ts'
import { GroupedLists } from './grouped-lists.ts'

export interface WaitingClaims {
  /** `waitingSince` is an RFC 3339 timestamp and orders the claims. */
  add(requirements: ClaimRequirements, waitingSince: string): void
  remove(claimKey: ObjectKey): void
  has(claimKey: ObjectKey): boolean
  /** Removes and returns the claim that has waited longest of those that the volume satisfies. */
  take(candidate: VolumeCandidate): ObjectKey | undefined
  readonly size: number
}

interface WaitingClaim {
  readonly requirements: ClaimRequirements
  readonly waitingSince: string
}

/** Bounded by the number of unbound claims in the cache. */
export function createWaitingClaims(): WaitingClaims {
  const groups = new GroupedLists<string, WaitingClaim>(byAge)
  const claimsByKey = new Map<ObjectKey, WaitingClaim>()

  function remove(claimKey: ObjectKey): void {
    const waitingClaim = claimsByKey.get(claimKey)
    if (!waitingClaim) return
    claimsByKey.delete(claimKey)
    groups.remove(matchKey(waitingClaim.requirements), groupOf(waitingClaim.requirements), waitingClaim)
  }

  return {
    get size() {
      return claimsByKey.size
    },
    add(requirements, waitingSince) {
      remove(requirements.claimKey)
      const waitingClaim = { requirements, waitingSince }
      claimsByKey.set(requirements.claimKey, waitingClaim)
      groups.add(matchKey(requirements), groupOf(requirements), waitingClaim)
    },
    remove,
    has: (claimKey) => claimsByKey.has(claimKey),
    take(candidate) {
      let oldestClaim: WaitingClaim | undefined
      for (const [, { first }] of groups.groups(matchKey(candidate))) {
        if (!first || (oldestClaim && byAge(oldestClaim, first) < 0)) continue
        if (meetsRequirements(candidate, first.requirements)) oldestClaim = first
      }
      if (oldestClaim) remove(oldestClaim.requirements.claimKey)
      return oldestClaim?.requirements.claimKey
    },
  }
}

const groupOf = ({ size, modes, io, selector }: ClaimRequirements): string =>
  `${size} ${modes} ${io.iops ?? ''} ${io.throughput ?? ''} ${selector ? formatLabelSelector(selector) : '*'}`

function byAge(a: WaitingClaim, b: WaitingClaim): number {
  if (a.waitingSince !== b.waitingSince) return a.waitingSince < b.waitingSince ? -1 : 1
  const [aKey, bKey] = [a.requirements.claimKey, b.requirements.claimKey]
  return aKey < bKey ? -1 : aKey > bKey ? 1 : 0
}
