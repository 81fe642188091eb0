// Topology of the first try for a claim, by the claim's uid: retries must send the same request, even if the node is
// deleted by then. Dropped once the driver has returned a final result.
import type { Term } from './topology.ts'

export interface ClaimTopology {
  /** The selected node; undefined with immediate binding. */
  node: string | undefined
  keys?: readonly string[]
  /** The topology labels of the selected node. */
  nodeLabels?: Readonly<Record<string, string>>
  requisite?: readonly Term[]
}

export interface TopologyMemory {
  /** Empty at first, and reset when the node changes, unless `mustRepeat`. */
  of(claimUid: string, node: string | undefined, mustRepeat: boolean): ClaimTopology
  forget(claimUid: string): void
  readonly size: number
}

/** Claims in progress; beyond this number the oldest is dropped, and its next try reads the nodes again. */
const CLAIMS_MAX = 10_000

export function createTopologyMemory(): TopologyMemory {
  const claims = new Map<string, ClaimTopology>()
  return {
    of(claimUid, node, mustRepeat) {
      const existing = claims.get(claimUid)
      if (existing && (mustRepeat || existing.node === node)) return existing
      const created: ClaimTopology = { node }
      claims.delete(claimUid)
      claims.set(claimUid, created)
      if (claims.size > CLAIMS_MAX) claims.delete(claims.keys().next().value!)
      return created
    },
    forget: (claimUid) => void claims.delete(claimUid),
    get size() {
      return claims.size
    },
  }
}
