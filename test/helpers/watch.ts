// A watch over HTTPS as a client sees it: events in order, until it is closed or the connection ends.
import type { IncomingMessage } from 'node:http'

export interface SeenEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: any
  readonly revision: number
}

/** Opens watches: a server in its own process or in this one. */
export interface Watchable {
  open(method: string, path: string): Promise<IncomingMessage>
}

export interface OpenWatch {
  /** Resolves once the events seen so far satisfy the condition; rejects if the stream ends first. */
  until(condition: (seen: readonly SeenEvent[]) => boolean): Promise<void>
  /** All events, once the stream has ended. */
  ended(): Promise<SeenEvent[]>
  close(): void
}

export function watchFrom(server: Watchable, path: string, resourceVersion: number, query = ''): OpenWatch {
  const seen: SeenEvent[] = []
  const waiting = new Set<() => void>()
  let response: IncomingMessage | undefined
  let closed = false
  let over = false
  const done = (async () => {
    try {
      response = await server.open('GET', `${path}?watch=1&resourceVersion=${resourceVersion}${query}`)
      if (closed) response.destroy()
      let rest = ''
      for await (const chunk of response.setEncoding('utf8')) {
        const lines = (rest + chunk).split('\n')
        rest = lines.pop()!
        for (const line of lines) {
          const { type, object } = JSON.parse(line)
          seen.push({ type, object, revision: Number(object.metadata?.resourceVersion ?? 0) })
        }
        for (const check of waiting) check()
      }
    } catch {
      // the connection was cut
    }
    over = true
    for (const check of waiting) check()
    return seen
  })()
  return {
    ended: () => done,
    close() {
      closed = true
      response?.destroy()
    },
    until: (condition) =>
      new Promise((resolve, reject) => {
        const check = () => {
          if (condition(seen)) resolve()
          else if (over) reject(new Error(`the watch ended after ${seen.length} events without the awaited one`))
          else return
          waiting.delete(check)
        }
        waiting.add(check)
        check()
      }),
  }
}
