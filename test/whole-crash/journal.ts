// Sends the requests of the workload, records acknowledged writes, and counts the requests that were rejected, failed or received no
// response. Every acknowledged write must be in the history that the watches recorded.
import { setTimeout as pause } from 'node:timers/promises'
import type { ReceivedResponse } from '../helpers/server.ts'
import type { Cluster } from './cluster.ts'
import type { RecordedEvent } from './watch-recorder.ts'

export interface Journal {
  /** Sends one request without retries. Returns the object if the request succeeded. */
  request(action: string, method: string, path: string, body?: object): Promise<any>
  /** Returns a message for each acknowledged write that is missing from the history. */
  findLostWrites(history: readonly RecordedEvent[]): string[]
  readonly acknowledgedCount: number
  /** Formats the number of requests by action and outcome, for the report of the run. */
  summary(): string
}

/** Pause after an unanswered request, while the server is probably down. */
const UNANSWERED_PAUSE_MS = 150
const MERGE = { 'content-type': 'application/merge-patch+json' }

interface AcknowledgedWrite {
  readonly action: string
  readonly method: string
  readonly object: any
}

export function createJournal(cluster: Cluster): Journal {
  const acknowledgedWrites: AcknowledgedWrite[] = []
  const counts = new Map<string, Map<string, number>>()
  /** Number of unanswered requests by error code. */
  const connectionErrors = new Map<string, number>()
  const count = (action: string, outcome: string) => {
    const outcomes = counts.get(action) ?? new Map<string, number>()
    counts.set(action, outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1))
  }

  async function send(method: string, path: string, body?: object): Promise<ReceivedResponse | undefined> {
    const headers = method === 'PATCH' ? MERGE : {}
    return cluster
      .server()
      .call(method, path, body, headers)
      .catch((error: NodeJS.ErrnoException) => {
        const cause = error.code ?? error.message
        connectionErrors.set(cause, (connectionErrors.get(cause) ?? 0) + 1)
        return undefined
      })
  }

  return {
    get acknowledgedCount() {
      return acknowledgedWrites.length
    },
    async request(action, method, path, body) {
      const response = await send(method, path, body)
      if (!response) {
        count(action, 'unanswered')
        return void (await pause(UNANSWERED_PAUSE_MS))
      }
      if (response.status >= 500 || response.status === 429) return void count(action, 'failed')
      if (response.status >= 300) return void count(action, `rejected ${response.json.reason ?? response.status}`)
      count(action, 'succeeded')
      const { json: object } = response
      acknowledgedWrites.push({ action, method, object })
      return object
    },
    findLostWrites(history) {
      const eventsByRevision = new Map(history.map((event) => [event.revision, event]))
      const deletedUids = new Set(
        history.filter(({ type }) => type === 'DELETED').map(({ object }) => object.metadata.uid),
      )
      const terminatingUids = new Set(
        history.filter(({ object }) => object.metadata.deletionTimestamp).map(({ object }) => object.metadata.uid),
      )
      return acknowledgedWrites.flatMap(({ action, method, object }) => {
        const { name, uid = object.details?.uid, resourceVersion } = object.metadata ?? {}
        if (method === 'DELETE') {
          return deletedUids.has(uid) || terminatingUids.has(uid)
            ? []
            : [`${action} ${name ?? object.details?.name}: its deletion was lost`]
        }
        const recordedObject = eventsByRevision.get(Number(resourceVersion))?.object
        const isRecorded =
          recordedObject?.metadata.uid === uid && JSON.stringify(recordedObject.spec) === JSON.stringify(object.spec)
        return isRecorded
          ? []
          : [`${action} ${name} at ${resourceVersion} was acknowledged, but is missing from the history`]
      })
    },
    summary: () =>
      [...counts, ['unanswered, by error', connectionErrors] as const]
        .sort(([left], [right]) => left.localeCompare(right))
        .map(
          ([action, outcomes]) =>
            `  ${action}: ${[...outcomes].map(([outcome, requestCount]) => `${requestCount} ${outcome}`).join(', ')}`,
        )
        .join('\n'),
  }
}
