// Limits a client's requests in flight, and adapts the limit to the API server: a 429 response or a slow response halves the
// limit, at most once a second, and other responses without a server error raise it again. Requests beyond the limit wait in
// call order. Watches are not limited. Background writes, such as events, have a lower priority: while many other requests are
// in flight, only one background write is sent at a time.
import { requestAborted } from '../api/status-error.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Client, WriteOptions } from './client.ts'
import type { RequestObserver } from './http/http-client.ts'

export interface AdaptiveLimit extends RequestObserver {
  /** The number of requests that may be in flight now. */
  readonly inFlightMax: number
  /** Returns a client whose requests are limited. All clients that it returns share the limit. */
  limitClient(client: Client): Client
}

/** The highest limit, which is also the first one. */
const IN_FLIGHT_MAX = 100
/** The lowest limit. */
const IN_FLIGHT_MIN = 4
/** The amount by which a response raises the limit, so that the lowest limit rises to the highest within 1,000 responses. */
const LIMIT_INCREMENT = 0.1
/** The code of a request that the caller aborted. Higher codes are errors of the server, or stand for a missing response. */
const ABORTED_CODE = 499
/** The limit is halved at most once in this time, because the requests of a burst are rejected together. */
const REDUCTION_INTERVAL_MS = 1_000
/** Background writes are limited to BACKGROUND_MIN while more than this number of other requests are in flight. */
const BUSY_MIN = 8
const BACKGROUND_MIN = 1
/** A response that takes this long is slow. Watches, and lists, which depend on the number of objects, are exempt. */
const SLOW_SECONDS = 5

export function createAdaptiveLimit({ clock, log }: { readonly clock: Clock; readonly log: Logger }): AdaptiveLimit {
  let limit = IN_FLIGHT_MAX
  let reducedAtMs = Number.NEGATIVE_INFINITY
  let inFlightCount = 0
  /** The number of background writes in flight, which inFlightCount includes. */
  let backgroundCount = 0
  const waitingRequests = new Set<() => void>()
  const waitingBackground = new Set<() => void>()

  function reduce(): void {
    const nowMs = clock.monotonicMs()
    if (nowMs - reducedAtMs < REDUCTION_INTERVAL_MS) return
    reducedAtMs = nowMs
    if (limit === IN_FLIGHT_MAX) log.warn({}, 'the API server is overloaded; sending fewer requests at a time')
    limit = Math.max(IN_FLIGHT_MIN, Math.floor(limit / 2))
  }

  function raise(): void {
    if (limit === IN_FLIGHT_MAX) return
    limit = Math.min(IN_FLIGHT_MAX, limit + LIMIT_INCREMENT)
    if (limit === IN_FLIGHT_MAX) log.info({}, 'the API server is no longer overloaded')
    admitWaiting()
  }

  function canSend(isBackground: boolean): boolean {
    if (inFlightCount >= Math.floor(limit)) return false
    return !isBackground || backgroundCount < BACKGROUND_MIN || inFlightCount - backgroundCount <= BUSY_MIN
  }

  function countStart(isBackground: boolean): void {
    inFlightCount++
    if (isBackground) backgroundCount++
  }

  function admitWaiting(): void {
    // Admit a background write first if none is in flight, so that other requests cannot block them forever.
    const queues = backgroundCount < BACKGROUND_MIN ? [true, false, true] : [false, true]
    for (const isBackground of queues) {
      for (const admit of isBackground ? waitingBackground : waitingRequests) {
        if (!canSend(isBackground)) break
        if (isBackground) waitingBackground.delete(admit)
        else waitingRequests.delete(admit)
        countStart(isBackground)
        admit()
      }
    }
  }

  /** Rejects if the signal is aborted while the request waits. */
  async function waitForAdmission(isBackground: boolean, signal: AbortSignal | undefined): Promise<void> {
    const queue = isBackground ? waitingBackground : waitingRequests
    if (queue.size === 0 && canSend(isBackground)) return countStart(isBackground)
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        queue.delete(admit)
        reject(requestAborted())
      }
      const admit = () => {
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }
      if (signal?.aborted) return onAbort()
      queue.add(admit)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }

  async function send<T>(options: SendOptions | undefined, request: () => Promise<T>): Promise<T> {
    const { isBackground = false, signal } = options ?? {}
    await waitForAdmission(isBackground, signal)
    try {
      return await request()
    } finally {
      inFlightCount--
      if (isBackground) backgroundCount--
      admitWaiting()
    }
  }

  return {
    get inFlightMax() {
      return Math.floor(limit)
    },
    observeRequest({ verb, code, seconds }) {
      const isSlow = seconds >= SLOW_SECONDS && verb !== 'LIST' && verb !== 'WATCH'
      if (code === 429 || isSlow) reduce()
      else if (code > 0 && code < ABORTED_CODE) raise() // other errors do not show that the server accepts more load
    },
    limitClient: (client) => ({
      ...client,
      get: (kind, ref, options) => send(options, () => client.get(kind, ref, options)),
      list: (kind, request) => send(request, () => client.list(kind, request)),
      create: (kind, object, options) => send(options, () => client.create(kind, object, options)),
      update: (kind, object, options) => send(options, () => client.update(kind, object, options)),
      patch: (kind, ref, patch, options) => send(options, () => client.patch(kind, ref, patch, options)),
      delete: (kind, ref, request) => send(request, () => client.delete(kind, ref, request)),
      commit: (writes, options) => send(options, () => client.commit(writes, options)),
    }),
  }
}

type SendOptions = Pick<WriteOptions, 'isBackground' | 'signal'>
