// A client for tests whose watches and lists fail on command. All other requests are passed to the wrapped client.
import type { Kind } from '../api/kind.ts'
import { ApiError } from '../api/status-error.ts'
import type { Client, WatchEvent, WatchRequest } from '../client/client.ts'

export interface FlakyClient extends Client {
  /** The number of open streams. */
  readonly streamCount: number
  /** The requests of all watches so far, including failed ones. */
  readonly watches: readonly WatchRequest[]
  readonly listCount: number
  /** Ends all open streams, with `error` if it is defined. */
  cutStreams(error?: Error): void
  /** Makes open streams deliver no more events without ending, as after a network partition. */
  silenceStreams(): void
  /** The error with which new watches fail, if set. */
  watchError: ApiError | undefined
  listError: ApiError | undefined
  /** How the server handles WatchList requests. */
  watchList: 'served' | 'ignored' | 'rejected' | 'broken'
}

export function createFlakyClient(wrappedClient: Client): FlakyClient {
  const openStreams = new Set<{ cut(error?: Error): void; silence(): void }>()
  const watches: WatchRequest[] = []
  let listCount = 0

  async function* watch(kind: Kind, request: WatchRequest): AsyncGenerator<WatchEvent<any>> {
    if (request.signal.aborted) return
    watches.push(request)
    if (flakyClient.watchError) throw flakyClient.watchError
    if (request.sendInitialEvents && flakyClient.watchList === 'broken') {
      throw new ApiError(500, 'InternalError', 'the storage does not support this feature')
    }
    if (request.sendInitialEvents && flakyClient.watchList === 'rejected') {
      throw new ApiError(422, 'Invalid', 'sendInitialEvents is forbidden for watch unless the feature gate is enabled')
    }
    const streamAbort = new AbortController()
    const stop = () => streamAbort.abort()
    request.signal.addEventListener('abort', stop, { once: true })
    let failure: Error | undefined
    let isSilent = false
    const openStream = {
      cut: (error?: Error) => {
        failure = error
        streamAbort.abort()
      },
      silence: () => {
        isSilent = true
      },
    }
    openStreams.add(openStream)
    const streamRequest = { ...request, signal: streamAbort.signal }
    try {
      for await (const event of wrappedClient.watch(kind, streamRequest)) {
        if (failure) break
        if (isSilent) continue
        const isEndOfInitialEvents = event.type === 'bookmark' && event.endsInitialEvents
        if (isEndOfInitialEvents && flakyClient.watchList === 'ignored') yield { ...event, endsInitialEvents: false }
        else yield event
      }
      if (failure) throw failure
    } finally {
      openStreams.delete(openStream)
      request.signal.removeEventListener('abort', stop)
      streamAbort.abort()
    }
  }

  const flakyClient: FlakyClient = {
    ...wrappedClient,
    watchError: undefined,
    listError: undefined,
    watchList: 'served',
    watches,
    get streamCount() {
      return openStreams.size
    },
    get listCount() {
      return listCount
    },
    cutStreams: (error) => {
      for (const stream of openStreams) stream.cut(error)
    },
    silenceStreams: () => {
      for (const stream of openStreams) stream.silence()
    },
    watch: watch as Client['watch'],
    list: async (kind, request) => {
      listCount++
      if (flakyClient.listError) throw flakyClient.listError
      return wrappedClient.list(kind, request)
    },
  }
  return flakyClient
}
