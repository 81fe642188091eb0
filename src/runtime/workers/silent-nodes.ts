// The nodes whose agents are silent, as lanes of a work queue: calls to a driver for their volumes are expected to fail.
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { CacheSet } from '../cache-set.ts'

export interface SilentLanes {
  has(lane: string): boolean
  /** Calls the listener with each lane that is no longer silent. Returns a function that unsubscribes. */
  onReturn(listener: (lane: string) => void): () => void
}

/** Needs the permission to list and watch nodes. Without it, no node is silent. */
export function createSilentNodes(caches: Pick<CacheSet, 'of'>): SilentLanes {
  const nodes = caches.of(nodeKind)
  return {
    has: (name) => isSilent(nodes.get({ name })),
    onReturn(listener) {
      const notify = (node: Readonly<Node>) => listener(node.metadata.name ?? '')
      return nodes.subscribe({
        updated: (next, old) => {
          if (isSilent(old) && !isSilent(next)) notify(next)
        },
        deleted: (node) => {
          if (isSilent(node)) notify(node)
        },
      })
    },
  }
}

/** The node-lifecycle controller sets the condition Ready to Unknown when heartbeats of the node are missing. */
const isSilent = (node: Readonly<Node> | undefined): boolean =>
  node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'Unknown') ?? false
