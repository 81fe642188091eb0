// Judges every pod that is given a node: all its claims have volumes, which that node reaches, and it takes pods.
import { keyOfObject } from '../../client/index.ts'
import { isReachableFrom } from '../../volumes/node-affinity.ts'
import type { ObjectOf } from '../engine/view.ts'
import { type CheckContext, claimsOf } from './context.ts'

/**
 * A scheduler sees nodes and claims through watches, and one that has gone silent is given up after a minute and a half.
 * What changed this recently it may not know.
 */
const KNOWN_MS = 120_000

export function checkPlacements({ system, view, report }: CheckContext): void {
  const { world } = system.cluster
  /** When each claim that is gone went, by key; and since when each node has not been there, or been cordoned. */
  const deletedMs = new Map<string, number>()
  const closedMs = new Map<string, { readonly why: string; readonly sinceMs: number }>()

  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of === 'claim' && !change.next) deletedMs.set(change.key, world.nowMs)
      if (change.of === 'node') close(change.key, change.next)
    }
    for (const change of changes) {
      if (change.of !== 'pod' || !change.next || !change.old) continue // one that comes with a node was placed by hand
      if (change.next.spec?.nodeName && !change.old.spec?.nodeName) check(change.next, change.next.spec.nodeName)
    }
  })

  function close(name: string, node: ObjectOf<'node'> | undefined): void {
    const why = node === undefined ? 'does not exist' : node.spec?.unschedulable ? 'is cordoned' : undefined
    const known = closedMs.get(name)
    if (why === undefined) closedMs.delete(name)
    else if (known?.why !== why) closedMs.set(name, { why, sinceMs: world.nowMs })
  }

  const isKnown = (sinceMs: number): boolean => world.nowMs - sinceMs > KNOWN_MS

  function check(pod: ObjectOf<'pod'>, nodeName: string): void {
    const text = `pod ${keyOfObject(pod)} was given ${nodeName}`
    const closed = closedMs.get(nodeName)
    const tolerates = pod.spec?.tolerations?.some(({ key }) => !key || key === 'node.kubernetes.io/unschedulable')
    if (closed && isKnown(closed.sinceMs) && !(closed.why === 'is cordoned' && tolerates)) {
      report('wrong placement', `${text}, which ${closed.why}`)
    }
    const node = view.nodes.get(nodeName)
    for (const { key, claim } of claimsOf(pod, view)) {
      if (!isKnown(deletedMs.get(key) ?? Number.NEGATIVE_INFINITY)) continue // it was deleted under the pod, and made anew
      const volume = view.volumes.get(claim?.spec?.volumeName ?? '')
      if (!claim) report('wrong placement', `${text}, and its claim ${key} does not exist`)
      else if (!claim.spec?.volumeName) report('wrong placement', `${text}, and its claim ${key} has no volume`)
      // One whose volume is gone is lost, and whoever placed the pod may not know yet.
      else if (volume && node && !isReachableFrom(volume, { name: nodeName, labels: node.metadata.labels ?? {} })) {
        report('wrong placement', `${text}, from where volume ${volume.metadata.name} of ${key} is not reached`)
      }
    }
  }
}
