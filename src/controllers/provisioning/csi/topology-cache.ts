// Stores the topology of the first request for each claim by the claim's uid, because retries must send the same request
// even if the node was deleted. The topology is removed when the driver returns a final result.
import type { Term } from './topology.ts'

export interface ClaimTopology {
  /** The selected node, or undefined with immediate binding. */
  node: string | undefined
  keys?: readonly string[]
  /** The topology labels of the selected node. */
  nodeLabels?: Readonly<Record<string, string>>
  requisite?: readonly Term[]
}

export interface TopologyCache {
  /**
   * Returns the claim's topology, for the caller to fill in. Creates an empty one for a new claim, and replaces it if
   * the selected node has changed, unless `mustRepeat` is set.
   */
  getOrCreate(claimUid: string, node: string | undefined, options: { readonly mustRepeat: boolean }): ClaimTopology
  delete(claimUid: string): void
  readonly size: number
}

/** Maximum number of claims. Beyond it, the oldest topology is removed, and the next request reads the nodes again. */
const CLAIMS_MAX = 10_000

export function createTopologyCache(): TopologyCache {
  const claims = new Map<string, ClaimTopology>()
  return {
    getOrCreate(claimUid, node, { mustRepeat }) {
      const existingTopology = claims.get(claimUid)
      if (existingTopology && (mustRepeat || existingTopology.node === node)) return existingTopology
      const newTopology: ClaimTopology = { node }
      claims.delete(claimUid)
      claims.set(claimUid, newTopology)
      if (claims.size > CLAIMS_MAX) claims.delete(claims.keys().next().value!)
      return newTopology
    },
    delete: (claimUid) => void claims.delete(claimUid),
    get size() {
      return claims.size
    },
  }
}
