// Plans the condition TopologyMismatch of a node from its labels, the topology keys that drivers have registered on it, and the
// keys by which volumes of these drivers are located. Pure. node-topology.ts applies the plan.
//
//   reason         when                                                                   consequence
//   LabelsMissing  the node lacks the label of a registered topology key                  no volume is provisioned for the node
//   KeysChanged    a driver no longer registers a key by which some of its volumes are    the driver does not restore the label;
//                  located, and the node has its label or no node registers the key       without it the volumes are unreachable
import type { Stored } from '../../api/kind.ts'
import type { CSINode } from '../../api/kinds/csi-node/csi-node-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import { missingTopologyLabels } from '../../volumes/topology-labels.ts'

export const TOPOLOGY_MISMATCH = 'TopologyMismatch'

export interface TopologyFacts {
  readonly node: Readonly<Stored<Node>>
  /** Undefined if the node has no CSINode. */
  readonly csiNode: Readonly<CSINode> | undefined
  /** Returns the keys in the node affinity of the driver's volumes, sorted. */
  volumeKeysOf(driver: string): readonly string[]
  /** Whether the driver has registered the key on any node. */
  isRegistered(driver: string, key: string): boolean
}

export interface TopologyMismatch {
  readonly reason: 'LabelsMissing' | 'KeysChanged'
  readonly message: string
}

/** Returns undefined if labels, keys and volumes match. Missing labels are reported before changed keys. */
export function findTopologyMismatch(facts: TopologyFacts): TopologyMismatch | undefined {
  const { node, csiNode } = facts
  const drivers = csiNode?.spec.drivers ?? []
  const missing = drivers.flatMap((driver) => {
    const keys = missingTopologyLabels(driver, node.metadata.labels)
    return keys.length === 0 ? [] : [`${keys.join(', ')} of the CSI driver ${driver.name}`]
  })
  if (missing.length > 0)
    return {
      reason: 'LabelsMissing',
      message: `the node lacks topology labels: ${missing.join('; ')}. No volume is provisioned for the node until the labels are set; restarting the driver sets them`,
    }
  const changed = drivers.flatMap((driver) => describeChangedKeys(driver, facts))
  return changed.length === 0 ? undefined : { reason: 'KeysChanged', message: changed.join('; ') }
}

type Driver = CSINode['spec']['drivers'][number]

function describeChangedKeys({ name, topologyKeys = [] }: Driver, facts: TopologyFacts): string[] {
  const { metadata } = facts.node
  const hasLabel = (key: string) => Object.hasOwn(metadata.labels ?? {}, key)
  const droppedKeys = facts
    .volumeKeysOf(name)
    .filter((key) => !topologyKeys.includes(key) && (hasLabel(key) || !facts.isRegistered(name, key)))
  const presentLabels = droppedKeys.filter(hasLabel)
  const missingLabels = droppedKeys.filter((key) => !hasLabel(key))
  const current = topologyKeys.length === 0 ? 'no topology keys' : `the topology keys ${topologyKeys.join(', ')}`
  const driver = `the CSI driver ${name} has registered ${current}`
  return [
    ...(missingLabels.length === 0
      ? []
      : [`${driver}, but some of its volumes require the label ${missingLabels.join(', ')}, which the node lacks`]),
    ...(presentLabels.length === 0
      ? []
      : [`${driver}, but some of its volumes require the label ${presentLabels.join(', ')}: keep it on the node`]),
  ]
}

export type NodeCondition = NonNullable<NonNullable<Node['status']>['conditions']>[number]

export const mismatchConditionOf = ({ status }: Readonly<Node>): NodeCondition | undefined =>
  status?.conditions?.find(({ type }) => type === TOPOLOGY_MISMATCH)

/** Returns the condition to write, or undefined if the node has it. A condition that is False is never added. */
export function planCondition(
  node: Readonly<Node>,
  mismatch: TopologyMismatch | undefined,
  now: string,
): NodeCondition | undefined {
  const existing = mismatchConditionOf(node)
  if (!mismatch && existing?.status !== 'True') return undefined
  const { reason, message } = mismatch ?? {
    reason: 'TopologyMatches',
    message: 'the node has the labels of its drivers',
  }
  const status = mismatch ? 'True' : 'False'
  if (existing?.status === status && existing.reason === reason && existing.message === message) return undefined
  const lastTransitionTime = existing?.status === status ? (existing.lastTransitionTime ?? now) : now
  return { type: TOPOLOGY_MISMATCH, status, reason, message, lastTransitionTime }
}

/** Returns the driver of a provisioned volume and the label keys that its node affinity requires. */
export function keysOfVolume({
  metadata,
  spec,
}: Readonly<PersistentVolume>): { readonly driver: string; readonly keys: readonly string[] } | undefined {
  const driver = spec?.csi?.driver
  // An administrator may have located other volumes by any label.
  if (driver === undefined || metadata.annotations?.[PROVISIONED_BY] !== driver) return undefined
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
  const keys = terms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key))
  return keys.length === 0 ? undefined : { driver, keys: [...new Set(keys)] }
}
