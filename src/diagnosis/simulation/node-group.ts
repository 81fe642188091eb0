// Node groups: a template from which a simulation adds nodes that do not exist yet, with their drivers and storage capacity.
import type { Stored } from '../../api/kind.ts'
import type { CSINode } from '../../api/kinds/csi-node/csi-node-schema.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { formatQuantity, quantityFromBytes, quantityToBytes } from '../../api/quantity.ts'
import { labelSelectorFromObject, matchesLabels } from '../../api/selectors.ts'
import { isReachableFrom } from '../../volumes/node-affinity.ts'
import type { Snapshot } from '../snapshot.ts'

type Capacity = Readonly<Stored<CSIStorageCapacity>>
type Labels = Readonly<Record<string, string>>

export interface NodeGroup {
  /** The nodes are named after the group: `workers-1`. */
  readonly name: string
  readonly node: Readonly<Stored<Node>>
  readonly csiNode: Readonly<Stored<CSINode>> | undefined
  /** The capacity of an empty node, as reports about the template. */
  readonly capacities: readonly Capacity[]
}

/** The objects of one node. */
interface GroupNode {
  readonly node: Readonly<Stored<Node>>
  readonly csiNode: Readonly<Stored<CSINode>> | undefined
  readonly capacities: readonly Capacity[]
}

const HOSTNAME = 'kubernetes.io/hostname'

/** Copies the objects of the template for a node with the given name. */
export function createGroupNode(group: NodeGroup, name: string): GroupNode {
  const { node, csiNode, capacities } = group
  const rename = renameValues(group, name)
  const uid = `simulated-${name}`
  return {
    node: { ...node, metadata: { ...node.metadata, name, uid, labels: rename(node.metadata.labels ?? {}) } },
    csiNode: csiNode && { ...csiNode, metadata: { ...csiNode.metadata, name, uid: `${uid}-csi` } },
    capacities: capacities
      .filter((capacity) => isAboutNode(capacity, group))
      .map((capacity, index) => ({
        ...capacity,
        metadata: { ...capacity.metadata, name: `${name}-${index + 1}`, uid: `${uid}-capacity-${index + 1}` },
        nodeTopology: { ...capacity.nodeTopology, matchLabels: rename(capacity.nodeTopology?.matchLabels ?? {}) },
      })),
  }
}

/**
 * Returns the reports of the group that are not about a single node, such as reports of a zone, unless one exists already for
 * the same class and topology.
 */
export function sharedCapacities(group: NodeGroup, existing: readonly Capacity[]): readonly Capacity[] {
  const keyOf = ({ storageClassName, nodeTopology }: Capacity) => JSON.stringify([storageClassName, nodeTopology])
  const keys = new Set(existing.map(keyOf))
  return group.capacities.filter((capacity) => !isAboutNode(capacity, group) && !keys.has(keyOf(capacity)))
}

/** Returns the group under another name, which also becomes its template's name. */
export function renameGroup(group: NodeGroup, name: string): NodeGroup {
  const { node, csiNode, capacities } = createGroupNode(group, name)
  return { name, node, csiNode, capacities }
}

/** Returns a group of nodes like an existing node without its pods or volumes. Returns undefined if the node does not exist. */
export function groupLike(nodeName: string, snapshot: Snapshot): NodeGroup | undefined {
  const node = snapshot.nodes.find(({ metadata }) => metadata.name === nodeName)
  if (!node) return undefined
  const csiNode = snapshot.csiNodes.find(({ metadata }) => metadata.name === nodeName)
  const name = `${nodeName}-new`
  const template: NodeGroup = { name, node: withoutCordon(node), csiNode, capacities: [] }
  const labels = node.metadata.labels ?? {}
  const renamed = { name, labels: renameValues(template, name)(labels) }
  // A volume that the node can use and a new node cannot is local to the node.
  const localVolumes = snapshot.volumes.filter(
    (volume) => isReachableFrom(volume, { name: nodeName, labels }) && !isReachableFrom(volume, renamed),
  )
  const driverOf = (className: string) =>
    snapshot.classes.find(({ metadata }) => metadata.name === className)?.provisioner
  const capacities = snapshot.capacities
    .filter(({ nodeTopology }) => nodeTopology && matchesLabels(labelSelectorFromObject(nodeTopology), labels))
    .filter((capacity) => isAboutNode(capacity, template))
    .map((capacity) => emptyCapacity(capacity, localVolumes, driverOf(capacity.storageClassName)))
  return { ...template, capacities }
}

/** Whether the report's topology has a label value that identifies the template's node. */
const isAboutNode = ({ nodeTopology }: Capacity, group: NodeGroup): boolean => {
  const values = valuesOfNode(group)
  return Object.values(nodeTopology?.matchLabels ?? {}).some((value) => values.has(value))
}

/** Returns the label values that identify the node: its name, its host name and the node IDs of its drivers. */
function valuesOfNode({ node, csiNode }: NodeGroup): ReadonlySet<string> {
  const { name, labels = {} } = node.metadata
  return new Set([name, labels[HOSTNAME] ?? name, ...(csiNode?.spec.drivers ?? []).map(({ nodeID }) => nodeID)])
}

function renameValues(group: NodeGroup, name: string): (labels: Labels) => Record<string, string> {
  const values = valuesOfNode(group)
  return (labels) =>
    Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, values.has(value) ? name : value]))
}

const withoutCordon = (node: Readonly<Stored<Node>>): Readonly<Stored<Node>> => ({
  ...node,
  spec: {
    ...node.spec,
    unschedulable: undefined,
    taints: node.spec?.taints?.filter(({ key }) => !key.startsWith('node.kubernetes.io/')),
  },
})

/** Returns the report of an empty node: the sizes of the driver's local volumes are added to the free capacity. */
function emptyCapacity(
  capacity: Capacity,
  localVolumes: readonly Readonly<PersistentVolume>[],
  driver: string | undefined,
): Capacity {
  if (capacity.capacity === undefined) return capacity
  const usedBytes = localVolumes
    .filter(({ spec }) => driver !== undefined && spec?.csi?.driver === driver)
    .reduce((sum, { spec }) => sum + quantityToBytes(spec?.capacity?.storage ?? '0'), 0n)
  const total = formatQuantity(quantityFromBytes(quantityToBytes(capacity.capacity) + usedBytes))
  const isLimitedByFree = capacity.maximumVolumeSize === capacity.capacity
  return { ...capacity, capacity: total, ...(isLimitedByFree ? { maximumVolumeSize: total } : {}) }
}
