// The taints that fence a lost node, the annotation that the agent of a returned node sets, and predicates for fenced and lost
// nodes.
//
//   out-of-service   an administrator has confirmed that the node is off (`stowage node fence NAME --confirm-off`)
//   quarantine       set by the node lifecycle controllers once the node is fenced. Its value identifies this fence. It stays
//                    until the agent of the returned node has unmounted the volumes of pods that no longer belong to the node,
//                    and has written the value to the annotation RELEASED_FENCE
//
// A node with one of the taints is fenced: the API server rejects writes of its agent, except those that report its return or
// finish pods that are being deleted.
import type { Node } from './node-schema.ts'

/** Taint with which an administrator guarantees that no workload runs on the node. */
export const OUT_OF_SERVICE_TAINT = 'node.kubernetes.io/out-of-service'

export const QUARANTINE_TAINT = 'stowage.dev/quarantine'

/**
 * Annotation that the agent sets on its Node to the value of the quarantine taint, once it has unmounted the volumes of removed
 * pods.
 */
export const RELEASED_FENCE = 'stowage.dev/released-fence'

type NodeWithTaints = Pick<Readonly<Node>, 'spec'> | undefined

export const isOutOfService = (node: NodeWithTaints): boolean =>
  node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE_TAINT) ?? false

/** Returns the value of the quarantine taint; undefined if the node does not have the taint. */
export function quarantineOf(node: NodeWithTaints): string | undefined {
  const taint = node?.spec?.taints?.find(({ key }) => key === QUARANTINE_TAINT)
  return taint && (taint.value ?? '')
}

export const isFenced = (node: NodeWithTaints): boolean => isOutOfService(node) || quarantineOf(node) !== undefined

/**
 * Whether an administrator has confirmed that the node is off, and its agent is silent. A node that has the taint and still
 * reports is running.
 */
export const isConfirmedOff = (node: Pick<Readonly<Node>, 'spec' | 'status'> | undefined): boolean =>
  isOutOfService(node) && conditionOf(node, 'Ready')?.status === 'Unknown'

/**
 * Returns the time at which the node became lost: it is confirmed to be off, its agent is silent, and none of its pods or
 * attachments is left (controllers/node-lifecycle/lost-nodes). Returns undefined if the node is not lost.
 */
export function lostSince(node: Pick<Readonly<Node>, 'spec' | 'status'> | undefined): string | undefined {
  const lost = conditionOf(node, 'Lost')
  return lost?.status === 'True' && isConfirmedOff(node) ? lost.lastTransitionTime : undefined
}

const conditionOf = (node: Pick<Readonly<Node>, 'status'> | undefined, name: string) =>
  node?.status?.conditions?.find(({ type }) => type === name)
