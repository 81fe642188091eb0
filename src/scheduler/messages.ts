// The messages of scheduling events and conditions. The message of a pod that fits on no node counts the nodes per reason, in
// the format of kube-scheduler, and ends with the sentences that plugins add.
//   0/3 nodes are available: 1 Insufficient cpu, 2 node(s) did not have enough free storage.
import type { NodeStatuses } from './framework/plugin.ts'
import type { Reason } from './framework/status.ts'

export const NO_NODES = 'no nodes available to schedule pods'

export function noNodeFitsMessage(statuses: NodeStatuses, explanations: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const { reasons } of statuses.values()) {
    for (const { message } of reasons) counts.set(message, (counts.get(message) ?? 0) + 1)
  }
  const reasonCounts = [...counts].map(([message, count]) => `${count} ${message}`).sort(byText)
  return [`0/${statuses.size} nodes are available: ${reasonCounts.join(', ')}.`, ...explanations].join(' ')
}

export const podRejectedMessage = (nodes: number, reasons: readonly Reason[]): string =>
  `0/${nodes} nodes are available: ${joinMessages(reasons)}.`

export const assignedMessage = (podKey: string, node: string): string => `Successfully assigned ${podKey} to ${node}`

export const nodeRejectedMessage = (nodeName: string, reasons: readonly Reason[]): string =>
  `node ${JSON.stringify(nodeName)} was selected, but no longer accepts the pod now that its volumes are bound: ${joinMessages(reasons)}`

export const nodeDeletedMessage = (nodeName: string): string =>
  `node ${JSON.stringify(nodeName)} was selected, but was deleted`

const joinMessages = (reasons: readonly Reason[]): string => reasons.map(({ message }) => message).join(', ')
const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
