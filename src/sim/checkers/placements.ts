// Rule `wrong placement`: when a pod is bound to a node, all its claims have volumes that the node can reach, and the node
// accepts pods.
import { keyOfObject } from '../../client/index.ts'
import { isReachableFrom } from '../../volumes/node-affinity.ts'
import type { ObjectOf } from '../engine/view.ts'
import { type CheckContext, claimsOf } from './context.ts'

/** The scheduler may not have received changes this recent. */
const PROPAGATION_MS = 120_000

export function checkPlacements({ system, view, report }: CheckContext): void {
  const { simulation } = system.cluster
  /** When each claim was deleted, by key. */
  const deletedMs = new Map<string, number>()
  /** Since when each node has been missing or cordoned. */
  const unavailableNodes = new Map<string, { readonly reason: string; readonly sinceMs: number }>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of === 'claim' && !change.next) deletedMs.set(change.key, simulation.nowMs)
      if (change.of === 'node') updateUnavailableNode(change.key, change.next)
    }
    for (const change of changes) {
      if (change.of !== 'pod' || !change.next || !change.old) continue // created with a node name
      if (change.next.spec?.nodeName && !change.old.spec?.nodeName) check(change.next, change.next.spec.nodeName)
    }
  })

  function updateUnavailableNode(name: string, node: ObjectOf<'node'> | undefined): void {
    const reason = node === undefined ? 'does not exist' : node.spec?.unschedulable ? 'is cordoned' : undefined
    const previousState = unavailableNodes.get(name)
    if (reason === undefined) unavailableNodes.delete(name)
    else if (previousState?.reason !== reason) unavailableNodes.set(name, { reason, sinceMs: simulation.nowMs })
  }

  const hasPropagated = (sinceMs: number): boolean => simulation.nowMs - sinceMs > PROPAGATION_MS

  function check(pod: ObjectOf<'pod'>, nodeName: string): void {
    const text = `pod ${keyOfObject(pod)} was bound to ${nodeName}`
    const unavailableNode = unavailableNodes.get(nodeName)
    const toleratesCordon = pod.spec?.tolerations?.some(({ key }) => !key || key === 'node.kubernetes.io/unschedulable')
    if (
      unavailableNode &&
      hasPropagated(unavailableNode.sinceMs) &&
      !(unavailableNode.reason === 'is cordoned' && toleratesCordon)
    ) {
      report('wrong placement', `${text}, which ${unavailableNode.reason}`)
    }
    const node = view.nodes.get(nodeName)
    for (const { key, claim } of claimsOf(pod, view)) {
      if (!hasPropagated(deletedMs.get(key) ?? Number.NEGATIVE_INFINITY)) continue // recently deleted, and possibly recreated
      const volume = view.volumes.get(claim?.spec?.volumeName ?? '')
      if (!claim) report('wrong placement', `${text}, but its claim ${key} does not exist`)
      else if (!claim.spec?.volumeName) report('wrong placement', `${text}, but its claim ${key} has no volume`)
      // A claim whose volume was deleted is Lost; the scheduler may not have received that yet.
      else if (volume && node && !isReachableFrom(volume, { name: nodeName, labels: node.metadata.labels ?? {} })) {
        report('wrong placement', `${text}, which cannot reach volume ${volume.metadata.name} of ${key}`)
      }
    }
  }
}
