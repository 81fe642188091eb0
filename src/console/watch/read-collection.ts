// Reads a collection from the API server as raw JSON: the pages of a list, and the events of a watch. Errors are ApiErrors.
// watched-collection.ts decides when to list and when to watch.
import type { IncomingMessage } from 'node:http'
import { ApiError, timedOut } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { LineSplitter } from '../../client/http/line-splitter.ts'
import { type HttpResponse, type Transport, unreachable } from '../../client/http/transport.ts'
import { errorOfResponse, errorOfStatus, parseResponse } from '../../client/http/wire.ts'
import type { ConsoleObject } from '../protocol.ts'

/** Also the maximum number of objects in a message to the page. */
export const PAGE_SIZE = 500
const LINE_BYTES_MAX = 16 * 1024 * 1024
const ERROR_BYTES_MAX = 1024 * 1024
/** A watch without data for this long is reopened. API servers send a bookmark about once a minute. */
const SILENCE_MS = 150_000

export interface ReadOptions {
  readonly transport: Transport
  readonly clock: Clock
  /** For messages about the connection. */
  readonly server: string
  readonly signal: AbortSignal
  /** Path and query with labelSelector and fieldSelector only. */
  readonly path: string
}

export interface ListPage {
  readonly objects: readonly ConsoleObject[]
  readonly type: { readonly apiVersion?: string; readonly kind?: string }
  readonly resourceVersion: string
  readonly isLast: boolean
}

export async function* readListPages({ transport, signal, path }: ReadOptions): AsyncGenerator<ListPage> {
  let continueToken = ''
  do {
    const query = `limit=${PAGE_SIZE}${continueToken ? `&continue=${encodeURIComponent(continueToken)}` : ''}`
    const response = await transport.call({ method: 'GET', path: withQuery(path, query), signal })
    const list = parseResponse(response)
    if (!Array.isArray(list.items)) throw new ApiError(400, 'BadRequest', `${path} is not a list of objects`)
    continueToken = list.metadata?.continue ?? ''
    const kind = typeof list.kind === 'string' ? list.kind.replace(/List$/, '') : undefined
    yield {
      objects: list.items,
      type: { ...(list.apiVersion ? { apiVersion: list.apiVersion } : {}), ...(kind ? { kind } : {}) },
      resourceVersion: list.metadata?.resourceVersion ?? '0',
      isLast: continueToken === '',
    }
  } while (continueToken)
}

export type CollectionEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: ConsoleObject }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }

/** Opens a watch after the resourceVersion. Resolves when the API server has accepted it. */
export async function openWatch(
  options: ReadOptions,
  resourceVersion: string,
): Promise<AsyncGenerator<CollectionEvent>> {
  const { transport, server, signal, path } = options
  const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${encodeURIComponent(resourceVersion)}`
  const incoming = await transport.open({ method: 'GET', path: withQuery(path, query), signal })
  if (incoming.statusCode !== 200) throw errorOfResponse(await readErrorResponse(incoming, server))
  return readEvents(options, incoming)
}

async function* readEvents(
  { server, clock, signal, path }: ReadOptions,
  incoming: IncomingMessage,
): AsyncGenerator<CollectionEvent> {
  const lines = new LineSplitter(LINE_BYTES_MAX)
  const stop = () => incoming.destroy()
  const startSilenceTimer = () =>
    clock.after(SILENCE_MS, () => incoming.destroy(timedOut(`the watch of ${path} received no data from ${server}`)))
  let cancelSilence = startSilenceTimer()
  signal.addEventListener('abort', stop, { once: true })
  try {
    for await (const chunk of incoming) {
      cancelSilence()
      cancelSilence = startSilenceTimer()
      for (const line of lines.push(chunk as Buffer)) {
        const event = parseEvent(line)
        if (event) yield event
      }
    }
  } catch (error) {
    throw unreachable(error, server)
  } finally {
    cancelSilence()
    signal.removeEventListener('abort', stop)
    incoming.destroy()
  }
}

function parseEvent(line: string): CollectionEvent | undefined {
  let event: { readonly type: string; readonly object: ConsoleObject }
  try {
    event = JSON.parse(line)
  } catch {
    throw new ApiError(502, 'BadGateway', `the watch sent a line that is not JSON: ${line.slice(0, 100)}`)
  }
  const { type, object } = event
  if (type === 'ERROR') throw errorOfStatus(object, 500)
  if (type === 'BOOKMARK') return { type, resourceVersion: object.metadata.resourceVersion }
  return type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' ? { type, object } : undefined
}

const withQuery = (path: string, query: string): string => `${path}${path.includes('?') ? '&' : '?'}${query}`

async function readErrorResponse(incoming: IncomingMessage, server: string): Promise<HttpResponse> {
  let text = ''
  try {
    for await (const chunk of incoming) {
      text += chunk
      if (text.length > ERROR_BYTES_MAX) break
    }
  } catch (error) {
    throw unreachable(error, server)
  }
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, text }
}
