// A burst: clients create claims all at once while one watches them become Bound, in a process that is not the
// server's. A claim's time runs from sending its create to reading the event that shows it Bound.
import { type Answer, type Connection, type Endpoint, openConnection } from './http-connection.ts'
import { numberedRequest, openAll, type RequestText } from './load-role.ts'

export interface BurstJob {
  readonly endpoint: Endpoint
  readonly clients: number
  readonly count: number
  /** The number in its places says which claim it is. */
  readonly create: RequestText
  readonly watch: RequestText
  /** What the event of a finished object contains. */
  readonly until: string
  /** Numbers used before. */
  readonly after: number
}

export interface BurstResult {
  readonly createSeconds: number
  /** From the first create sent to the last claim seen Bound. */
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
}

/** Without news for this long something is stuck, and the measurement with it. */
const PATIENCE_MS = 60_000

export async function runBurst(job: BurstJob): Promise<BurstResult> {
  const { endpoint, clients, count, create, watch, until, after } = job
  let fail: (error: Error) => void = () => {}
  const broken = new Promise<never>((_, reject) => {
    fail = reject
  })
  broken.catch(() => {}) // whoever waits hears of it
  const connections = await openAll(endpoint, Math.min(clients, count), fail)
  const request = numberedRequest(create)
  const sentMs = new Float64Array(count)
  const tookMs = new Float64Array(count)
  let [sent, answered, finished] = [0, 0, 0]
  let createdMs = 0
  let lastNewsMs = performance.now()
  let done = () => {}
  const over = new Promise<void>((resolve) => {
    done = resolve
  })

  const watcher = await follow(endpoint, watch, (line) => {
    if (!line.includes(until)) return
    const number = Number(/"name":"[a-z-]*(\d{10})"/.exec(line)?.[1]) - after - 1
    if (!(number >= 0 && number < count) || tookMs[number]! > 0) return
    lastNewsMs = performance.now()
    tookMs[number] = lastNewsMs - sentMs[number]!
    if (++finished === count) done()
  })
  const startMs = performance.now()
  for (const connection of connections) {
    const next = () => {
      if (sent === count) return
      const number = sent++
      sentMs[number] = performance.now()
      connection.ask(request(after + number + 1), onAnswer)
    }
    const onAnswer = ({ status }: Answer) => {
      if (status >= 300) return fail(new Error(`${create.method} ${create.path}: ${status}`))
      if (++answered < count) return next()
      createdMs = performance.now()
      for (const one of connections) one.close() // a server does not keep idle ones for ever
    }
    next()
  }
  const patience = setInterval(() => {
    if (performance.now() - lastNewsMs > PATIENCE_MS) fail(new Error(`${count - finished} of ${count} never got there`))
  }, 1_000)
  try {
    await Promise.race([over, broken])
    const seconds = (performance.now() - startMs) / 1000
    const sorted = [...tookMs].sort((a, b) => a - b)
    const at = (share: number) => sorted[Math.min(count - 1, Math.ceil(count * share) - 1)]!
    return { createSeconds: (createdMs - startMs) / 1000, seconds, p50Ms: at(0.5), p99Ms: at(0.99) }
  } finally {
    clearInterval(patience)
    for (const connection of [...connections, watcher]) connection.close()
  }
}

/** A server cuts a watcher that falls behind; like every client, it goes on from what it saw last. */
async function follow(
  endpoint: Endpoint,
  { method, path }: RequestText,
  onLine: (line: string) => void,
): Promise<{ close(): void }> {
  let version = ''
  let connection: Connection | undefined
  let closed = false
  const begin = async (): Promise<void> => {
    connection = await openConnection(endpoint, () => {
      if (!closed) void begin()
    })
    const from = version === '' ? path : `${path}&resourceVersion=${version}`
    await connection.read(numberedRequest({ method, path: from })(0), (line) => {
      version = /"resourceVersion":"(\d+)"/.exec(line)?.[1] ?? version
      onLine(line)
    })
  }
  await begin()
  return {
    close() {
      closed = true
      connection?.close()
    },
  }
}
