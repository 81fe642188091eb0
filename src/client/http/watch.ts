// Reads a watch over HTTP: a stream with one JSON event per line. Servers send bookmarks about once a minute, so a watch that
// has received one and then receives no data for too long fails. A server on etcd 3.4 sends no bookmarks, so its watches may
// be silent: they end without an error, and the caller finds out whether the server can be reached when it watches again.
import type { IncomingMessage } from 'node:http'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { ApiError, timedOut } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'

import type { WatchEvent } from '../client.ts'
import { LineSplitter } from './line-splitter.ts'
import { unreachable } from './transport.ts'
import { errorOfStatus, objectOf, type WireObject } from './wire.ts'

export const WATCH_SILENCE_MS = 150_000
const LINE_BYTES_MAX = 16 * 1024 * 1024 // more than ten times the largest object that servers store

export interface WatchStreamOptions<T extends KubeObject> {
  readonly incoming: IncomingMessage
  readonly kind: Kind<T>
  readonly server: string
  readonly clock: Clock
  readonly silenceMs: number
  readonly signal: AbortSignal
}

export async function* readWatch<T extends KubeObject>(options: WatchStreamOptions<T>): AsyncGenerator<WatchEvent<T>> {
  const { incoming, kind, server, clock, silenceMs, signal } = options
  const lines = new LineSplitter(LINE_BYTES_MAX)
  const stop = () => incoming.destroy()
  let cancelSilence = () => {}
  let isSilent = false
  let sendsBookmarks = false
  const restartSilenceTimer = () => {
    cancelSilence()
    cancelSilence = clock.after(silenceMs, () => {
      isSilent = true
      incoming.destroy()
    })
  }
  signal.addEventListener('abort', stop, { once: true })
  try {
    if (signal.aborted) return
    restartSilenceTimer()
    for await (const chunk of incoming) {
      restartSilenceTimer()
      for (const line of lines.push(chunk as Buffer)) {
        const event = parseEvent(kind, line)
        sendsBookmarks ||= event?.type === 'bookmark'
        if (event) yield event
        if (signal.aborted) return
      }
    }
  } catch (error) {
    if (signal.aborted || (isSilent && !sendsBookmarks)) return
    if (isSilent) {
      const seconds = silenceMs / 1_000
      throw timedOut(`the watch of ${kind.plural} received no event and no bookmark from ${server} for ${seconds} s`)
    }
    throw unreachable(error, server)
  } finally {
    cancelSilence()
    signal.removeEventListener('abort', stop)
    incoming.destroy()
  }
}

const TYPES = { ADDED: 'added', MODIFIED: 'modified', DELETED: 'deleted' } as const

/** Returns undefined for unknown event types. */
function parseEvent<T extends KubeObject>(kind: Kind<T>, line: string): WatchEvent<T> | undefined {
  let event: { type: string; object: WireObject }
  try {
    event = JSON.parse(line)
  } catch {
    throw new ApiError(502, 'BadGateway', `the watch sent a line that is not JSON: ${line.slice(0, 100)}`)
  }
  const { type, object } = event
  if (type === 'ERROR') throw errorOfStatus(object, 500)
  if (type === 'BOOKMARK') {
    const { resourceVersion = '0', annotations } = object.metadata
    return {
      type: 'bookmark',
      resourceVersion,
      endsInitialEvents: annotations?.['k8s.io/initial-events-end'] === 'true',
    }
  }
  const eventType = TYPES[type as keyof typeof TYPES]
  return eventType && { type: eventType, object: objectOf(kind, object) }
}
