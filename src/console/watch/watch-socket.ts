// The WebSocket of a tab: reads the commands `watch` and `unwatch`, and sends the messages of all its watches. Changes are sent
// in batches; while the socket is slow, they are coalesced by object in the subscriptions.
import type { WebSocket } from 'ws'
import { ApiError, badRequest, tooManyRequests } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import type { Collections } from './collections.ts'
import { createSubscription, formatRejection, type Subscription } from './subscription.ts'

export interface WatchSocketOptions {
  readonly socket: WebSocket
  readonly collections: Collections
  readonly clock: Clock
  /** Aborted when the session ends. */
  readonly signal: AbortSignal
}

/** Changes to a complete list are collected for this time and sent together. */
const BATCH_MS = 100
/** Nothing is added to the socket's buffer while it has more than this. */
const BUFFERED_BYTES_MAX = 1024 * 1024
const PING_INTERVAL_MS = 20_000
/** A socket is closed after this many pings without a pong. */
const PINGS_WITHOUT_PONG_MAX = 3
/** Further watches of the tab are rejected with 429. */
const WATCHES_MAX = 64
/** Close code for a session that has ended: the page must not open the socket again with the same session. */
const SESSION_ENDED_CODE = 4401

interface Watch {
  readonly subscription: Subscription
  unsubscribe(): void
}

export function serveWatchSocket({ socket, collections, clock, signal }: WatchSocketOptions): void {
  const watches = new Map<number, Watch>()
  let cancelFlush: (() => void) | undefined
  let isFlushImmediate = false

  function scheduleFlush(isImmediate: boolean): void {
    if (cancelFlush && (isFlushImmediate || !isImmediate)) return
    cancelFlush?.()
    isFlushImmediate = isImmediate
    cancelFlush = clock.after(isImmediate ? 0 : BATCH_MS, flush)
  }

  function flush(): void {
    cancelFlush = undefined
    for (const { subscription } of watches.values()) {
      while (socket.bufferedAmount < BUFFERED_BYTES_MAX) {
        const message = subscription.nextMessage()
        if (message === undefined) break
        socket.send(message, onSent)
      }
    }
  }

  /** Continues when the buffer has been written. */
  const onSent = () => {
    if (socket.bufferedAmount === 0 && socket.readyState === socket.OPEN && !cancelFlush) scheduleFlush(true)
  }

  function watch(id: number, path: string, revision: string | undefined): void {
    unwatch(id)
    if (watches.size >= WATCHES_MAX) throw tooManyRequests(`a tab can watch at most ${WATCHES_MAX} collections`)
    let subscription: Subscription | undefined
    const { unsubscribe } = collections.subscribe(path, (collection) => {
      const onPending = () => scheduleFlush(!subscription?.isSynced)
      subscription = createSubscription(collection, { id, revision, onPending })
      return subscription
    })
    watches.set(id, { subscription: subscription as unknown as Subscription, unsubscribe })
    scheduleFlush(true)
  }

  function unwatch(id: number): void {
    watches.get(id)?.unsubscribe()
    watches.delete(id)
  }

  socket.on('message', (data, isBinary) => {
    const command = isBinary ? undefined : parseCommand(String(data))
    if (!command) return socket.close(1007, 'expected {"op":"watch"|"unwatch","id":NUMBER,…} as text')
    try {
      if (command.op === 'unwatch') unwatch(command.id)
      else watch(command.id, command.path, command.rev)
    } catch (error) {
      const failure = error instanceof ApiError ? error : badRequest(String(error))
      socket.send(formatRejection(command.id, failure))
    }
  })

  let pingsWithoutPong = 0
  socket.on('pong', () => {
    pingsWithoutPong = 0
  })
  const ping = () => {
    if (pingsWithoutPong++ >= PINGS_WITHOUT_PONG_MAX) return socket.terminate()
    socket.ping()
    cancelPing = clock.after(PING_INTERVAL_MS, ping)
  }
  let cancelPing = clock.after(PING_INTERVAL_MS, ping)

  const endSession = () => socket.close(SESSION_ENDED_CODE, 'the session has ended')
  signal.addEventListener('abort', endSession, { once: true })
  socket.on('error', () => socket.terminate())
  socket.once('close', () => {
    signal.removeEventListener('abort', endSession)
    cancelPing()
    cancelFlush?.()
    for (const id of [...watches.keys()]) unwatch(id)
  })
}

type Command =
  | { readonly op: 'watch'; readonly id: number; readonly path: string; readonly rev: string | undefined }
  | { readonly op: 'unwatch'; readonly id: number }

function parseCommand(text: string): Command | undefined {
  let value: { op?: unknown; id?: unknown; path?: unknown; rev?: unknown } | null
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const { op, id, path, rev } = value ?? {}
  if (!Number.isSafeInteger(id)) return undefined
  if (op === 'unwatch') return { op, id: id as number }
  if (op !== 'watch' || typeof path !== 'string') return undefined
  return { op, id: id as number, path, rev: typeof rev === 'string' ? rev : undefined }
}
