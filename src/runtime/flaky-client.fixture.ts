// A client for tests whose watches and lists fail on command, as connections and servers do. Other requests reach the
// client it wraps.
import type { Kind } from '../api/kind.ts'
import { ApiError } from '../api/status-error.ts'
import type { Client, WatchEvent, WatchRequest } from '../client/client.ts'

export interface FlakyClient extends Client {
  /** Streams that are open, and that were opened so far. */
  readonly streams: number
  readonly watches: readonly WatchRequest[]
  readonly lists: number
  /** Ends all open streams, with the error if one is given. */
  cut(error?: Error): void
  /** Open streams deliver nothing more and do not end, as after a network partition. */
  silence(): void
  /** While set, new watches fail with it. */
  watchError: ApiError | undefined
  listError: ApiError | undefined
  /** How a server without WatchList treats the parameter. */
  watchList: 'served' | 'ignored' | 'refused' | 'broken'
}

export function flakyClient(real: Client): FlakyClient {
  const open = new Set<{ cut(error?: Error): void; silence(): void }>()
  const watches: WatchRequest[] = []
  let lists = 0

  async function* watch(kind: Kind, request: WatchRequest): AsyncGenerator<WatchEvent<any>> {
    if (request.signal.aborted) return
    watches.push(request)
    if (flaky.watchError) throw flaky.watchError
    if (request.sendInitialEvents && flaky.watchList === 'broken') {
      throw new ApiError(500, 'InternalError', 'a feature of the storage below is missing')
    }
    if (request.sendInitialEvents && flaky.watchList === 'refused') {
      throw new ApiError(422, 'Invalid', 'sendInitialEvents is forbidden for watch unless the feature gate is enabled')
    }
    const closing = new AbortController()
    const stop = () => closing.abort()
    request.signal.addEventListener('abort', stop, { once: true })
    let failure: Error | undefined
    let silent = false
    const handle = {
      cut: (error?: Error) => {
        failure = error
        closing.abort()
      },
      silence: () => {
        silent = true
      },
    }
    open.add(handle)
    const asked = { ...request, signal: closing.signal }
    try {
      for await (const event of real.watch(kind, asked)) {
        if (failure) break
        if (silent) continue
        const isMark = event.type === 'bookmark' && event.endsInitialEvents
        if (isMark && flaky.watchList === 'ignored') yield { ...event, endsInitialEvents: false }
        else yield event
      }
      if (failure) throw failure
    } finally {
      open.delete(handle)
      request.signal.removeEventListener('abort', stop)
      closing.abort()
    }
  }

  const flaky: FlakyClient = {
    ...real,
    watchError: undefined,
    listError: undefined,
    watchList: 'served',
    watches,
    get streams() {
      return open.size
    },
    get lists() {
      return lists
    },
    cut: (error) => {
      for (const stream of open) stream.cut(error)
    },
    silence: () => {
      for (const stream of open) stream.silence()
    },
    watch: watch as Client['watch'],
    list: async (kind, request) => {
      lists++
      if (flaky.listError) throw flaky.listError
      return real.list(kind, request)
    },
  }
  return flaky
}
