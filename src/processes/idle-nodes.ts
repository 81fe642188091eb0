// Nodes of an earlier `stowage up` that this one does not start, because it was told to have fewer. They say so at once:
// until somebody noticed their silence they would pass for ready, and pods would be sent to where nobody takes them.
import { readdir } from 'node:fs/promises'
import { nodeKind } from '../api/kinds/node/node.ts'
import { ApiError } from '../api/status-error.ts'
import type { Clock } from '../base/clock.ts'
import type { Client } from '../client/index.ts'
import { taintsDue, timestamp, unknownConditions } from '../controllers/node-lifecycle/index.ts'

export interface IdleNodesOptions {
  /** Where each node of `stowage up` has a directory by its name. */
  readonly dir: string
  /** How many are started: the first ones. */
  readonly count: number
  readonly client: Client
  readonly clock: Clock
}

/** Their names, once each says that it is not there. */
export async function markIdleNodes({ dir, count, client, clock }: IdleNodesOptions): Promise<string[]> {
  const marked: string[] = []
  for (const number of await numbersIn(dir)) {
    if (number > count && (await mark(number, client, timestamp(clock)))) marked.push(nameOf(number))
  }
  return marked
}

const PREFIX = 'node-'
const nameOf = (number: number) => `${PREFIX}${number}`

async function numbersIn(dir: string): Promise<number[]> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [] // there never were nodes
    throw error
  })
  return names
    .filter((name) => /^node-[1-9]\d*$/.test(name))
    .map((name) => Number(name.slice(PREFIX.length)))
    .sort((a, b) => a - b)
}

/** False if there is no such node any more. */
async function mark(number: number, client: Client, now: string): Promise<boolean> {
  const name = nameOf(number)
  try {
    const message = `stowage up was started without this node. --nodes ${number} starts it again.`
    const node = await client.get(nodeKind, { name })
    const conditions = unknownConditions(node, now).map((condition) => ({ ...condition, message }))
    const body = { status: { conditions } }
    const said =
      conditions.length === 0
        ? node
        : await client.patch(nodeKind, { name }, { type: 'strategic', body }, { subresource: 'status' })
    const taints = taintsDue(said, now)
    if (taints) await client.patch(nodeKind, { name }, { type: 'merge', body: { spec: { taints } } })
    return true
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return false
    throw error
  }
}
