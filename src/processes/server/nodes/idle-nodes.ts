// Marks the nodes that `stowage up` no longer runs, because it was restarted with a smaller --nodes, as not ready. Otherwise
// the scheduler would place pods on these nodes until the node lifecycle controller detects that they are not running.
import { readdir } from 'node:fs/promises'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { isNotFound } from '../../../api/status-error.ts'
import type { Clock } from '../../../base/clock.ts'
import { timestamp } from '../../../base/timestamps.ts'
import type { Client } from '../../../client/index.ts'
import { unknownConditions } from '../../../controllers/node-lifecycle/conditions.ts'
import { desiredTaints } from '../../../controllers/node-lifecycle/taints.ts'
import { type NodeNames, parseNodeNumber } from './node-names.ts'

export interface IdleNodesOptions {
  /** The directory that contains one directory per node. */
  readonly dir: string
  /** Number of running nodes. They have the lowest numbers. */
  readonly count: number
  /** Returns the name of a node by its number. */
  readonly nameOf: NodeNames
  readonly client: Client
  readonly clock: Clock
}

/** Marks the idle nodes and returns their names. */
export async function markIdleNodes({ dir, count, nameOf, client, clock }: IdleNodesOptions): Promise<string[]> {
  const markedNames: string[] = []
  for (const number of await readNodeNumbers(dir)) {
    const name = nameOf(number)
    if (number > count && (await markIdle({ name, number }, client, timestamp(clock.nowMs())))) markedNames.push(name)
  }
  return markedNames
}

async function readNodeNumbers(dir: string): Promise<number[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw error
  })
  return names
    .map(parseNodeNumber)
    .filter((number) => number !== undefined)
    .sort((a, b) => a - b)
}

/** Returns false if the Node object does not exist. */
async function markIdle(
  { name, number }: { readonly name: string; readonly number: number },
  client: Client,
  now: string,
): Promise<boolean> {
  try {
    const message = `stowage up was started without this node. --nodes ${number} starts it again.`
    const node = await client.get(nodeKind, { name })
    const conditions = unknownConditions(node, now).map((condition) => ({ ...condition, message }))
    const body = { status: { conditions } }
    const markedNode =
      conditions.length === 0
        ? node
        : await client.patch(nodeKind, { name }, { type: 'strategic', body }, { subresource: 'status' })
    const taints = desiredTaints(markedNode, now)
    if (taints) await client.patch(nodeKind, { name }, { type: 'merge', body: { spec: { taints } } })
    return true
  } catch (error) {
    if (isNotFound(error)) return false
    throw error
  }
}
