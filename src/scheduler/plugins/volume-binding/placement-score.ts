// Scores nodes by the placement policy of a storage class (../../../volumes/placement.ts). A score depends only on the node's
// rank: the best node has SCORE_MAX even if it is better by one byte. This way `pack` fills one of several equal nodes,
// although all other scores prefer an unused one.

import type { Placement } from '../../../volumes/placement.ts'
import { SCORE_MAX } from '../../framework/plugin.ts'

/** The storage of one node for the volumes of one class. */
export interface NodeStorage {
  /** Free bytes once the volumes of the pod and all reserved volumes are created. Negative if they do not fit. */
  readonly freeBytes: bigint
  /** The bytes of all volumes plus the free bytes. */
  readonly totalBytes: bigint
}

/** Returns the scores of nodes in the same order. A node without storage has the score 0. */
export function scorePlacement(placement: Placement, nodes: readonly (NodeStorage | undefined)[]): number[] {
  const preferences = nodes.map((storage) => storage && choosePreference(placement, storage))
  const ranking = preferences.filter((preference) => preference !== undefined).sort(comparePreferences)
  const ranks = new Map<string, number>()
  for (const preference of ranking) {
    const id = identify(preference)
    if (!ranks.has(id)) ranks.set(id, ranks.size)
  }
  const worstRank = Math.max(1, ranks.size - 1)
  return preferences.map((preference) => {
    if (!preference) return 0
    if (ranks.size === 1) return SCORE_MAX
    return Math.round(SCORE_MAX * (1 - ranks.get(identify(preference))! / worstRank))
  })
}

interface Preference {
  /** Whether the node keeps the requested share free. True for policies without a share. */
  readonly keepsShare: boolean
  /** The higher, the better, among nodes with equal `keepsShare`. */
  readonly value: bigint
}

function choosePreference(placement: Placement, { freeBytes, totalBytes }: NodeStorage): Preference {
  switch (placement.policy) {
    case 'spread':
      return { keepsShare: true, value: freeBytes }
    case 'pack':
      return { keepsShare: true, value: -freeBytes }
    case 'headroom': {
      const keepsShare = freeBytes * 100n >= totalBytes * BigInt(placement.freePercent)
      return { keepsShare, value: keepsShare ? -freeBytes : freeBytes }
    }
  }
}

/** Orders the best node first. */
function comparePreferences(a: Preference, b: Preference): number {
  if (a.keepsShare !== b.keepsShare) return a.keepsShare ? -1 : 1
  return a.value === b.value ? 0 : a.value > b.value ? -1 : 1
}

const identify = ({ keepsShare, value }: Preference): string => `${keepsShare} ${value}`
