// Follows the topology segments of a driver in a cluster. The segment of a node has the node's labels with the topology keys
// that the driver has registered in the CSINode. A change to a node recomputes the segment of that node only.
//
//   CSINode n1: keys zone, rack     Node n1: zone=a rack=1 …  →  {rack: 1, zone: a}
//   a label or the Node is missing, or the node is fenced     →  no segment
//   the driver has no keys                                    →  the segment without labels, which contains all nodes

import type { CSINode } from '../../api/kinds/csi-node/csi-node-schema.ts'
import { isFenced } from '../../api/kinds/node/fencing.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Cache } from '../../runtime/index.ts'
import { type Segment, type Segments, segmentOf } from './segments.ts'

export interface ClusterSegmentsOptions {
  readonly driverName: string
  readonly nodes: Cache<Node>
  readonly csiNodes: Cache<CSINode>
}

export interface ClusterSegments extends Segments {
  stop(): void
}

export function createClusterSegments({ driverName, nodes, csiNodes }: ClusterSegmentsOptions): ClusterSegments {
  const segmentByNode = new Map<string, Segment>()
  const segments = new Map<string, { readonly segment: Segment; nodeCount: number }>()
  const followers = new Set<(segment: Segment) => void>()
  const notify = (segment: Segment) => {
    for (const follower of followers) follower(segment)
  }

  function updateNode(name: string): void {
    const previousSegment = segmentByNode.get(name)
    const currentSegment = computeSegment(csiNodes.get({ name }), nodes.get({ name }), driverName)
    if (previousSegment?.id === currentSegment?.id) return
    if (currentSegment) addNode(name, currentSegment)
    else segmentByNode.delete(name)
    if (previousSegment) removeNode(previousSegment)
  }

  function addNode(name: string, segment: Segment): void {
    const existingEntry = segments.get(segment.id)
    segmentByNode.set(name, existingEntry?.segment ?? segment)
    if (existingEntry) existingEntry.nodeCount++
    else {
      segments.set(segment.id, { segment, nodeCount: 1 })
      notify(segment)
    }
  }

  function removeNode(segment: Segment): void {
    const existingEntry = segments.get(segment.id)
    if (!existingEntry || --existingEntry.nodeCount > 0) return
    segments.delete(segment.id)
    notify(segment)
  }

  const update = ({ metadata: { name = '' } }: Readonly<Node | CSINode>) => updateNode(name)
  const handlers = { added: update, updated: update, deleted: update }
  const stops = [csiNodes.subscribe(handlers), nodes.subscribe(handlers)]
  return {
    get size() {
      return segments.size
    },
    get: (id) => segments.get(id)?.segment,
    *all() {
      for (const { segment } of segments.values()) yield segment
    },
    segmentOfNode: (node) => segmentByNode.get(node),
    follow: (follower) => {
      followers.add(follower)
      return () => void followers.delete(follower)
    },
    stop: () => {
      for (const stop of stops) stop()
    },
  }
}

function computeSegment(
  csiNode: Readonly<CSINode> | undefined,
  node: Readonly<Node> | undefined,
  driverName: string,
): Segment | undefined {
  const driver = csiNode?.spec.drivers.find(({ name }) => name === driverName)
  if (!driver || !node || isFenced(node)) return undefined
  const labels = node.metadata.labels ?? {}
  const keys = driver.topologyKeys ?? []
  if (!keys.every((key) => Object.hasOwn(labels, key))) return undefined
  return segmentOf(Object.fromEntries(keys.map((key) => [key, labels[key]!])))
}
