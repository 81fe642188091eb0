// Adds nodes of a group to the caches of a simulation, and checks whether a pod would fit on an empty one.
import type { Clock, Random } from '../../base/clock.ts'
import { createPodEvaluator } from '../../scheduler/index.ts'
import type { StoredPod } from '../cluster.ts'
import { SNAPSHOT_KINDS } from '../snapshot.ts'
import { createSnapshotCache } from '../snapshot-cache.ts'
import type { SnapshotCaches } from '../snapshot-caches.ts'
import { createGroupNode, type NodeGroup, sharedCapacities } from './node-group.ts'

interface NodeAdder {
  /** The names of the added nodes. */
  readonly names: ReadonlySet<string>
  add(): void
  wouldFit(pod: StoredPod): boolean
}

export function createNodeAdder(
  group: NodeGroup,
  caches: SnapshotCaches,
  deps: { readonly clock: Clock; readonly random: Random },
): NodeAdder {
  const names = new Set<string>()
  for (const capacity of sharedCapacities(group, caches.capacities?.list() ?? [])) caches.capacities?.put(capacity)

  let number = 0
  function chooseName(): string {
    for (;;) {
      const name = `${group.name}-${++number}`
      if (!caches.nodes.get(name)) return name
    }
  }

  const emptyNode = createGroupNode(group, group.name)
  const evaluate = createPodEvaluator({
    caches: {
      ...caches, // claims and volumes change with the simulation
      pods: createSnapshotCache(SNAPSHOT_KINDS.pods, []),
      nodes: createSnapshotCache(SNAPSHOT_KINDS.nodes, [emptyNode.node]),
      csiNodes: createSnapshotCache(SNAPSHOT_KINDS.csiNodes, emptyNode.csiNode ? [emptyNode.csiNode] : []),
      capacities:
        caches.capacities &&
        createSnapshotCache(SNAPSHOT_KINDS.capacities, [...caches.capacities.list(), ...emptyNode.capacities]),
    },
    ...deps,
  })

  return {
    names,
    add() {
      const name = chooseName()
      const { node, csiNode, capacities } = createGroupNode(group, name)
      names.add(name)
      if (csiNode) caches.csiNodes.put(csiNode)
      for (const capacity of capacities) caches.capacities?.put(capacity)
      caches.nodes.put(node)
    },
    wouldFit: (pod) => evaluate(pod).message === undefined,
  }
}
