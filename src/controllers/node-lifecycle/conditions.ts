// What a node's conditions say, and what they should say of a node that has fallen silent. Pure.
import type { Node } from '../../api/kinds/node/node-schema.ts'

export type NodeCondition = NonNullable<NonNullable<Node['status']>['conditions']>[number]

const PRESSURES = ['MemoryPressure', 'DiskPressure', 'PIDPressure']

export const readyOf = ({ status }: Readonly<Node>): NodeCondition | undefined =>
  status?.conditions?.find(({ type }) => type === 'Ready')

export const isReady = (node: Readonly<Node>): boolean => readyOf(node)?.status === 'True'

/** When the node's agent last wrote its status, in the agent's own time: good for telling two writes apart, no more. */
export const heartbeatOf = (node: Readonly<Node>): string | undefined => readyOf(node)?.lastHeartbeatTime

/** The conditions to write, for nobody knows any more whether they hold; none when that is written already. */
export function conditionsOfSilence(node: Readonly<Node>, now: string): NodeCondition[] {
  const stale = (node.status?.conditions ?? [])
    .filter(({ type, status }) => (type === 'Ready' || PRESSURES.includes(type)) && status !== 'Unknown')
    .map((condition) => ({
      ...condition,
      status: 'Unknown',
      reason: 'NodeStatusUnknown',
      message: 'Kubelet stopped posting node status.',
      lastTransitionTime: now,
    }))
  if (readyOf(node)) return stale
  const never = {
    type: 'Ready',
    status: 'Unknown',
    reason: 'NodeStatusNeverUpdated',
    message: 'Kubelet never posted node status.',
    lastTransitionTime: now,
    ...(node.metadata.creationTimestamp ? { lastHeartbeatTime: node.metadata.creationTimestamp } : {}),
  }
  return [...stale, never]
}
