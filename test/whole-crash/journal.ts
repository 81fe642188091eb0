// Records every request of the workload: acknowledged writes, each of which must be in the recorded history, and how many
// requests were rejected, failed or never answered.
import { setTimeout as pause } from 'node:timers/promises'
import type { Reply } from '../helpers/server.ts'
import type { Cluster } from './cluster.ts'
import type { RecordedEvent } from './watch-recorder.ts'

export interface Journal {
  /** Sends one request, once. Returns the object if it succeeded. */
  request(what: string, method: string, path: string, body?: object): Promise<any>
  /** Acknowledged writes that the history lacks. */
  lost(history: readonly RecordedEvent[]): string[]
  readonly acknowledged: number
  /** For the report of the run. */
  summary(): string
}

/** Slows requests down while the server is down. */
const UNANSWERED_PAUSE_MS = 150
const MERGE = { 'content-type': 'application/merge-patch+json' }

interface Acknowledged {
  readonly what: string
  readonly method: string
  readonly object: any
}

export function createJournal(cluster: Cluster): Journal {
  const acknowledged: Acknowledged[] = []
  const counts = new Map<string, Map<string, number>>()
  /** Why requests were not answered. */
  const broken = new Map<string, number>()
  const count = (what: string, outcome: string) => {
    const of = counts.get(what) ?? new Map<string, number>()
    counts.set(what, of.set(outcome, (of.get(outcome) ?? 0) + 1))
  }

  async function send(method: string, path: string, body?: object): Promise<Reply | undefined> {
    const headers = method === 'PATCH' ? MERGE : {}
    return cluster
      .server()
      .call(method, path, body, headers)
      .catch((error: NodeJS.ErrnoException) => {
        const how = error.code ?? error.message
        broken.set(how, (broken.get(how) ?? 0) + 1)
        return undefined
      })
  }

  return {
    get acknowledged() {
      return acknowledged.length
    },
    async request(what, method, path, body) {
      const reply = await send(method, path, body)
      if (!reply) {
        count(what, 'unanswered')
        return void (await pause(UNANSWERED_PAUSE_MS))
      }
      if (reply.status >= 500 || reply.status === 429) return void count(what, 'failed')
      if (reply.status >= 300) return void count(what, `refused ${reply.json.reason ?? reply.status}`)
      count(what, 'done')
      const { json: object } = reply
      acknowledged.push({ what, method, object })
      return object
    },
    lost(history) {
      const states = new Map(history.map((event) => [event.revision, event]))
      const ends = new Set(history.filter(({ type }) => type === 'DELETED').map(({ object }) => object.metadata.uid))
      const dying = new Set(
        history.filter(({ object }) => object.metadata.deletionTimestamp).map(({ object }) => object.metadata.uid),
      )
      return acknowledged.flatMap(({ what, method, object }) => {
        const { name, uid = object.details?.uid, resourceVersion } = object.metadata ?? {}
        if (method === 'DELETE') {
          return ends.has(uid) || dying.has(uid)
            ? []
            : [`${what} ${name ?? object.details?.name}: its deletion was lost`]
        }
        const found = states.get(Number(resourceVersion))?.object
        const isThere = found?.metadata.uid === uid && JSON.stringify(found.spec) === JSON.stringify(object.spec)
        return isThere ? [] : [`${what} ${name} at ${resourceVersion} was acknowledged and lost`]
      })
    },
    summary: () =>
      [...counts, ['unanswered because of', broken] as const]
        .sort(([one], [other]) => one.localeCompare(other))
        .map(([what, of]) => `  ${what}: ${[...of].map(([outcome, number]) => `${number} ${outcome}`).join(', ')}`)
        .join('\n'),
  }
}
