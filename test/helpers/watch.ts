// Reads a watch over HTTPS: its events in order, until the watch is closed or the connection ends.
import type { IncomingMessage } from 'node:http'

export interface ReceivedEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: any
  readonly revision: number
}

/** A server that can be watched, in its own process or in this one. */
export interface Watchable {
  open(method: string, path: string): Promise<IncomingMessage>
}

export interface OpenWatch {
  /** Resolves when the received events satisfy the condition. Rejects if the stream ends first. */
  waitUntil(condition: (events: readonly ReceivedEvent[]) => boolean): Promise<void>
  /** Resolves with all events when the stream has ended. */
  whenEnded(): Promise<ReceivedEvent[]>
  close(): void
}

export function watchFrom(server: Watchable, path: string, resourceVersion: number, query = ''): OpenWatch {
  const events: ReceivedEvent[] = []
  const pendingChecks = new Set<() => void>()
  let response: IncomingMessage | undefined
  let isClosed = false
  let hasEnded = false
  const stream = (async () => {
    try {
      response = await server.open('GET', `${path}?watch=1&resourceVersion=${resourceVersion}${query}`)
      if (isClosed) response.destroy()
      let partialLine = ''
      for await (const chunk of response.setEncoding('utf8')) {
        const lines = (partialLine + chunk).split('\n')
        partialLine = lines.pop()!
        for (const line of lines) {
          const { type, object } = JSON.parse(line)
          events.push({ type, object, revision: Number(object.metadata?.resourceVersion ?? 0) })
        }
        for (const check of pendingChecks) check()
      }
    } catch {
      // The connection was closed, or could not be opened.
    }
    hasEnded = true
    for (const check of pendingChecks) check()
    return events
  })()
  return {
    whenEnded: () => stream,
    close() {
      isClosed = true
      response?.destroy()
    },
    waitUntil: (condition) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (condition(events)) resolve()
          else if (hasEnded) reject(new Error(`the watch ended after ${events.length} events without the awaited one`))
          else return
          pendingChecks.delete(check)
        }
        pendingChecks.add(check)
        check()
      }),
  }
}
