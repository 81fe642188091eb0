// The sentence that says why no node would do: how many nodes gave each reason, in the form clients know, and whatever
// plugins have to add.
//   0/3 nodes are available: 1 Insufficient cpu, 2 node(s) did not have enough free storage.
import type { Refusals } from './plugin.ts'

export const NO_NODES = 'no nodes available to schedule pods'

export function noNodeWouldDo(refusals: Refusals, remarks: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const reasons of refusals.values()) {
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  }
  const counted = [...counts].map(([reason, count]) => `${count} ${reason}`).sort(byText)
  return [`0/${refusals.size} nodes are available: ${counted.join(', ')}.`, ...remarks].join(' ')
}

export const hopeless = (nodes: number, because: string): string => `0/${nodes} nodes are available: ${because}.`

export const assigned = (podKey: string, node: string): string => `Successfully assigned ${podKey} to ${node}`

export const volumesToCome = (nodeName: string): string =>
  `Node ${JSON.stringify(nodeName)} is chosen, and not all volumes are there yet. The events of the pod's claims say why.`

export const closedMeanwhile = (nodeName: string, reasons: readonly string[]): string =>
  `node ${JSON.stringify(nodeName)} was chosen, and takes the pod no more now that its volumes are there: ${reasons.join(', ')}`

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
