// Reads the conditions of a node, and computes the conditions of a node that has stopped reporting. Pure.
import type { Node } from '../../api/kinds/node/node-schema.ts'

export type NodeCondition = NonNullable<NonNullable<Node['status']>['conditions']>[number]

const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure']

export const readyConditionOf = ({ status }: Readonly<Node>): NodeCondition | undefined =>
  status?.conditions?.find(({ type }) => type === 'Ready')

export const isReady = (node: Readonly<Node>): boolean => readyConditionOf(node)?.status === 'True'

/** Returns the time of the last heartbeat by the agent's clock. It may only be compared for equality. */
export const heartbeatOf = (node: Readonly<Node>): string | undefined => readyConditionOf(node)?.lastHeartbeatTime

/** Returns the conditions to set to Unknown. The list is empty if all of them are already Unknown. */
export function unknownConditions(node: Readonly<Node>, now: string): NodeCondition[] {
  const conditions = (node.status?.conditions ?? [])
    .filter(({ type, status }) => (type === 'Ready' || PRESSURES.includes(type)) && status !== 'Unknown')
    .map((condition) => ({
      ...condition,
      status: 'Unknown',
      reason: 'NodeStatusUnknown',
      message: 'Kubelet stopped posting node status.',
      lastTransitionTime: now,
    }))
  if (readyConditionOf(node)) return conditions
  const readyCondition = {
    type: 'Ready',
    status: 'Unknown',
    reason: 'NodeStatusNeverUpdated',
    message: 'Kubelet never posted node status.',
    lastTransitionTime: now,
    ...(node.metadata.creationTimestamp ? { lastHeartbeatTime: node.metadata.creationTimestamp } : {}),
  }
  return [...conditions, readyCondition]
}

/** Returns the first condition of a lost node (lost-nodes/plan-lost-node.ts). */
export const unreachableCondition = (now: string): NodeCondition => ({
  type: 'Unreachable',
  status: 'True',
  reason: 'Unreachable',
  message: 'the node has stopped reporting; its pods may still run and write to their volumes',
  lastTransitionTime: now,
})
