// Creates objects at a constant rate in a separate process, and deletes each some time after its creation. If the server
// falls behind, requests wait for a free connection, and the achieved rate is lower.
import type { Connection, Endpoint, ResponseSummary } from './http-connection.ts'
import { numberedRequest, openAll, type RequestText } from './load-role.ts'

export interface ChurnJob {
  readonly endpoint: Endpoint
  readonly clients: number
  readonly perSecond: number
  readonly seconds: number
  /** From the create of an object to its delete. */
  readonly lifetimeMs: number
  /** Requests in which NUMBER identifies the object. */
  readonly create: RequestText
  readonly remove: RequestText
}

export interface ChurnResult {
  readonly created: number
  readonly deleted: number
  readonly seconds: number
}

const TICK_MS = 10

export async function runChurn(job: ChurnJob): Promise<ChurnResult> {
  const { endpoint, clients, perSecond, seconds, lifetimeMs, create, remove } = job
  let failure: Error | undefined
  const onBroken = (error: Error) => {
    failure ??= error
  }
  const connections = await openAll(endpoint, clients, onBroken)
  const idleConnections: Connection[] = [...connections]
  const requests = { create: numberedRequest(create), remove: numberedRequest(remove) }
  const dueRequests: { readonly is: 'create' | 'remove'; readonly number: number }[] = []
  const createdObjects: { readonly number: number; readonly atMs: number }[] = []
  const counts = { create: 0, remove: 0 }
  let scheduledCount = 0
  const startMs = performance.now()

  function sendDue(): void {
    while (dueRequests.length > 0) {
      // In turns: the server closes a connection without a first request after ten seconds.
      const connection = idleConnections.shift()
      if (!connection) return
      const { is, number } = dueRequests.shift()!
      connection.send(requests[is](number), ({ status }: ResponseSummary) => {
        if (status >= 300) onBroken(new Error(`${is} of object ${number}: ${status}`))
        counts[is]++
        if (is === 'create') createdObjects.push({ number, atMs: performance.now() })
        idleConnections.push(connection)
        sendDue()
      })
    }
  }

  try {
    for (;;) {
      if (failure) throw failure
      const nowMs = performance.now()
      const elapsedSeconds = Math.min(seconds, (nowMs - startMs) / 1000)
      while (scheduledCount < elapsedSeconds * perSecond) dueRequests.push({ is: 'create', number: ++scheduledCount })
      while (createdObjects[0] && nowMs - createdObjects[0].atMs >= lifetimeMs)
        dueRequests.push({ is: 'remove', number: createdObjects.shift()!.number })
      sendDue()
      if (elapsedSeconds === seconds && counts.remove === scheduledCount) break
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
    return { created: counts.create, deleted: counts.remove, seconds: (performance.now() - startMs) / 1000 }
  } finally {
    for (const connection of connections) connection.close()
  }
}
