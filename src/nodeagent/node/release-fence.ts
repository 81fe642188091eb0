// Releases the fence of a returning node (api/kinds/node/fencing.ts). While the Node has the quarantine taint, the agent
// compares its mount records with the pods that the server lists for the node. When no record is left of a pod that was removed
// or is being deleted, the agent writes the taint's value to an annotation, and the node lifecycle controllers put the node
// back into service.
import { quarantineOf, RELEASED_FENCE } from '../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { Cache } from '../../runtime/index.ts'
import type { MountRecords } from '../csi/mount-records.ts'

export interface ReleaseFenceDeps {
  readonly client: Client
  readonly nodeName: string
  readonly nodes: Cache<Node>
  readonly records: Pick<MountRecords, 'uids' | 'stagings' | 'publicationsOfVolume'>
  readonly clock: Clock
  readonly log: Logger
}

const RECHECK_INTERVAL_MS = 1_000

/** Releases each fence of the node until the signal is aborted. */
export async function releaseFences(deps: ReleaseFenceDeps, signal: AbortSignal): Promise<void> {
  const { nodes, nodeName, clock, log } = deps
  let wake = () => {}
  const unsubscribe = nodes.subscribe({ added: () => wake(), updated: () => wake(), deleted: () => wake() })
  signal.addEventListener('abort', () => wake(), { once: true })
  try {
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve
      })
      const fence = pendingFence(nodes.get({ name: nodeName }))
      if (fence === undefined) {
        await changed
        continue
      }
      try {
        if (await release(fence, deps))
          log.info({ node: nodeName, fence }, 'released the fence of the node: no volume of a removed pod is mounted')
      } catch (error) {
        log.warn({ node: nodeName, reason: (error as Error).message }, 'cannot release the fence of the node; retrying')
      }
      await clock.sleep(RECHECK_INTERVAL_MS, signal).catch(() => {})
    }
  } finally {
    unsubscribe()
  }
}

/** Returns the node's fence if the agent has not released it yet. */
function pendingFence(node: Readonly<Node> | undefined): string | undefined {
  const fence = quarantineOf(node)
  return fence === undefined || node?.metadata.annotations?.[RELEASED_FENCE] === fence ? undefined : fence
}

async function release(fence: string, { client, nodeName, records }: ReleaseFenceDeps): Promise<boolean> {
  // Read from the server: the cache may still have pods that were removed while the node was cut off.
  const { items } = await client.list(podKind, { fieldSelector: `spec.nodeName=${nodeName}` })
  const activeUids = new Set(
    items.filter(({ metadata }) => !metadata.deletionTimestamp).map(({ metadata }) => metadata.uid),
  )
  const hasStalePods = records.uids().some((uid) => !activeUids.has(uid))
  const hasStaleStagings = records.stagings().some((staging) => records.publicationsOfVolume(staging).length === 0)
  if (hasStalePods || hasStaleStagings) return false
  const body = { metadata: { annotations: { [RELEASED_FENCE]: fence } } }
  await client.patch(nodeKind, { name: nodeName }, { type: 'merge', body })
  return true
}
