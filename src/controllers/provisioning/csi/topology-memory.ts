// What was found out about the nodes for a claim's first try, by the claim's uid: its retries must ask the driver for
// the same, also when the node is gone by then. Dropped once the driver has given a final answer.
import type { Term } from './topology.ts'

export interface ClaimTopology {
  /** The node these are about; undefined for claims that do not wait for one. */
  node: string | undefined
  keys?: readonly string[]
  /** The selected node's labels, those that count. */
  place?: Readonly<Record<string, string>>
  requisite?: readonly Term[]
}

export interface TopologyMemory {
  /** Empty at first. With another node than last time it starts anew, unless `mustRepeat`. */
  of(claimUid: string, node: string | undefined, mustRepeat: boolean): ClaimTopology
  forget(claimUid: string): void
  readonly size: number
}

/** Claims being made at once; beyond this the oldest is forgotten, and its next try looks at the nodes anew. */
const CLAIMS_MAX = 10_000

export function createTopologyMemory(): TopologyMemory {
  const claims = new Map<string, ClaimTopology>()
  return {
    of(claimUid, node, mustRepeat) {
      const known = claims.get(claimUid)
      if (known && (mustRepeat || known.node === node)) return known
      const fresh: ClaimTopology = { node }
      claims.delete(claimUid)
      claims.set(claimUid, fresh)
      if (claims.size > CLAIMS_MAX) claims.delete(claims.keys().next().value!)
      return fresh
    },
    forget: (claimUid) => void claims.delete(claimUid),
    get size() {
      return claims.size
    },
  }
}
