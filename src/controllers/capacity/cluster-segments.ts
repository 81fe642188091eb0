// The topology segments of a driver in a cluster: on every node that lists the driver in its CSINode, the values of the
// driver's topology keys among the node's labels. A change of a node recomputes that node only.
//
//   CSINode n1: keys zone, rack     Node n1: zone=a rack=1 …  →  {rack: 1, zone: a}
//   a label or the Node is missing                            →  n1 is in no segment until it appears
//   the driver names no keys                                  →  the one segment that every node is in

import type { CSINode } from '../../api/kinds/csi-node/csi-node-schema.ts'
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

export function clusterSegments({ driverName, nodes, csiNodes }: ClusterSegmentsOptions): ClusterSegments {
  const byNode = new Map<string, Segment>()
  const segments = new Map<string, { readonly segment: Segment; nodes: number }>()
  const followers = new Set<(segment: Segment) => void>()
  const changed = (segment: Segment) => {
    for (const follower of followers) follower(segment)
  }

  function updateNode(name: string): void {
    const before = byNode.get(name)
    const now = segmentOn(csiNodes.get({ name }), nodes.get({ name }), driverName)
    if (before?.id === now?.id) return
    if (now) enter(name, now)
    else byNode.delete(name)
    if (before) leave(before)
  }

  function enter(name: string, segment: Segment): void {
    const known = segments.get(segment.id)
    byNode.set(name, known?.segment ?? segment)
    if (known) known.nodes++
    else {
      segments.set(segment.id, { segment, nodes: 1 })
      changed(segment)
    }
  }

  function leave(segment: Segment): void {
    const known = segments.get(segment.id)
    if (!known || --known.nodes > 0) return
    segments.delete(segment.id)
    changed(segment)
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
    ofNode: (node) => byNode.get(node),
    follow: (follower) => {
      followers.add(follower)
      return () => void followers.delete(follower)
    },
    stop: () => {
      for (const stop of stops) stop()
    },
  }
}

function segmentOn(
  csiNode: Readonly<CSINode> | undefined,
  node: Readonly<Node> | undefined,
  driverName: string,
): Segment | undefined {
  const driver = csiNode?.spec.drivers.find(({ name }) => name === driverName)
  if (!driver || !node) return undefined
  const labels = node.metadata.labels ?? {}
  const keys = driver.topologyKeys ?? []
  if (!keys.every((key) => Object.hasOwn(labels, key))) return undefined
  return segmentOf(Object.fromEntries(keys.map((key) => [key, labels[key]!])))
}
