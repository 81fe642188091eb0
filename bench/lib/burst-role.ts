// Runs a burst in a separate process: clients create or edit objects at once while a watch waits for their final state. The
// time of an object is from sending its request to reading the event that contains `until`. The connections and the watch can be
// opened by an earlier job, so that a measurement between the two jobs contains no TLS handshakes or initial events.
import { type Connection, type Endpoint, openConnection, type ResponseSummary } from './http-connection.ts'
import { numberedRequest, openAll, type RequestText } from './load-role.ts'

export interface BurstJob {
  readonly endpoint: Endpoint
  readonly clients: number
  readonly count: number
  /** The request that creates or edits an object. NUMBER identifies the object. */
  readonly request: RequestText
  readonly watch: RequestText
  /** The resourceVersion that the watch starts after. Default: it starts with the existing objects. */
  readonly watchAfter?: string
  /** Text in the event of a finished object. */
  readonly until: string
  /** The number before that of the first object. */
  readonly after: number
}

export interface BurstResult {
  /** From sending the first request to the last final event. */
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** Opens the connections and the watch of a burst, which the next job, 'run', then runs. */
export interface OpenBurstJob extends BurstJob {
  readonly do: 'open'
}

/** The burst fails if no object finishes for this long. */
const EVENT_TIMEOUT_MS = 60_000

let opened: (() => Promise<BurstResult>) | undefined

export async function runBurst(job: BurstJob | OpenBurstJob | 'run'): Promise<BurstResult | undefined> {
  if (job === 'run') {
    if (!opened) throw new Error('no burst is open')
    const run = opened
    opened = undefined
    return run()
  }
  const run = await openBurst(job)
  if (!('do' in job)) return run()
  opened = run
  return undefined
}

/** Opens the connections and the watch. Returns the function that sends the requests. */
async function openBurst(job: BurstJob): Promise<() => Promise<BurstResult>> {
  const { endpoint, clients, count, request, watch, watchAfter = '', until, after } = job
  let fail: (error: Error) => void = () => {}
  const failure = new Promise<never>((_, reject) => {
    fail = reject
  })
  failure.catch(() => {}) // handled by the race below
  const connections = await openAll(endpoint, Math.min(clients, count), fail)
  const encodeRequest = numberedRequest(request)
  const sentMs = new Float64Array(count)
  const durationMs = new Float64Array(count)
  let [sentCount, responseCount, finishedCount] = [0, 0, 0]
  let lastEventMs = performance.now()
  let resolveFinished = () => {}
  const completion = new Promise<void>((resolve) => {
    resolveFinished = resolve
  })

  const watcher = await follow(endpoint, watch, watchAfter, (line) => {
    if (!line.includes(until)) return
    const number = Number(/"name":"[a-z-]*(\d{10})"/.exec(line)?.[1]) - after - 1
    if (!(number >= 0 && number < count) || durationMs[number]! > 0) return
    lastEventMs = performance.now()
    durationMs[number] = lastEventMs - sentMs[number]!
    if (++finishedCount === count) resolveFinished()
  })
  return async () => {
    const startMs = performance.now()
    lastEventMs = startMs
    for (const connection of connections) {
      const sendNext = () => {
        if (sentCount === count) return
        const number = sentCount++
        sentMs[number] = performance.now()
        connection.send(encodeRequest(after + number + 1), onResponse)
      }
      const onResponse = ({ status }: ResponseSummary) => {
        if (status >= 300) return fail(new Error(`${request.method} ${request.path}: ${status}`))
        if (++responseCount < count) return sendNext()
        for (const openedConnection of connections) openedConnection.close() // the server closes idle connections
      }
      sendNext()
    }
    const timer = setInterval(() => {
      if (performance.now() - lastEventMs > EVENT_TIMEOUT_MS)
        fail(new Error(`${count - finishedCount} of ${count} objects did not finish`))
    }, 1_000)
    try {
      await Promise.race([completion, failure])
      const seconds = (performance.now() - startMs) / 1000
      const sortedMs = [...durationMs].sort((a, b) => a - b)
      const percentile = (share: number) => sortedMs[Math.min(count - 1, Math.ceil(count * share) - 1)]!
      return { seconds, p50Ms: percentile(0.5), p99Ms: percentile(0.99) }
    } finally {
      clearInterval(timer)
      for (const connection of [...connections, watcher]) connection.close()
    }
  }
}

/** Reads a watch. Resumes from the last received version if the connection breaks: the server closes watches that fall behind. */
async function follow(
  endpoint: Endpoint,
  { method, path }: RequestText,
  watchAfter: string,
  onLine: (line: string) => void,
): Promise<{ close(): void }> {
  let version = watchAfter
  let connection: Connection | undefined
  let isClosed = false
  const begin = async (): Promise<void> => {
    connection = await openConnection(endpoint, () => {
      if (!isClosed) void begin()
    })
    const watchPath = version === '' ? path : `${path}&resourceVersion=${version}`
    await connection.read(numberedRequest({ method, path: watchPath })(0), (line) => {
      version = /"resourceVersion":"(\d+)"/.exec(line)?.[1] ?? version
      onLine(line)
    })
  }
  await begin()
  return {
    close() {
      isClosed = true
      connection?.close()
    },
  }
}
