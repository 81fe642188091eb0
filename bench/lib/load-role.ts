// Generates load in a separate process: many clients, each on its own connection.
//   requests  each client sends the next request after the response to the last, for a given time
//   turns     the same with several requests that alternate on open connections, to compare their cost
//   fanOut    watchers follow one collection while a client creates objects in it, one after the other
import { type Connection, type Endpoint, openConnection, type ResponseSummary } from './http-connection.ts'

export interface RequestsJob {
  readonly do: 'requests'
  readonly endpoint: Endpoint
  readonly clients: number
  readonly request: RequestText
  readonly warmUpMs: number
  readonly measureMs: number
}

export interface TurnsJob {
  readonly do: 'turns'
  /** The number of clients per endpoint. */
  readonly clients: number
  readonly requests: readonly (RequestText & { readonly endpoint: Endpoint })[]
  /** The sequence of turns, as indexes of `requests`. */
  readonly order: readonly number[]
  /** The warm-up sends the request of the first turn. */
  readonly warmUpMs: number
  readonly turnMs: number
}

export interface TurnsResult {
  /** Responses per second: for each request, one rate per turn. */
  readonly rates: readonly (readonly number[])[]
}

export interface FanOutJob {
  readonly do: 'fanOut'
  readonly endpoint: Endpoint
  readonly watchers: number
  readonly watch: RequestText
  readonly create: RequestText
  readonly creates: number
}

/** NUMBER in path or body is replaced by a number. */
export interface RequestText {
  /** PATCH is a merge patch. */
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: string
}

export interface LoadResult {
  /** Responses, or delivered events. */
  readonly count: number
  readonly seconds: number
  /** The body size of one response; 0 for a fan-out. */
  readonly bodyBytes: number
}

/** Replaced by a number of ten digits: every request has the same length. */
export const NUMBER = '@@@@@@@@@@'

export async function runLoad(job: RequestsJob | TurnsJob | FanOutJob): Promise<LoadResult | TurnsResult> {
  switch (job.do) {
    case 'requests':
      return runRequests(job)
    case 'turns':
      return runTurns(job)
    case 'fanOut':
      return runFanOut(job)
  }
}

async function runRequests({ endpoint, clients, request, warmUpMs, measureMs }: RequestsJob): Promise<LoadResult> {
  const failure = createDeferred<never>()
  const connections = await openAll(endpoint, clients, failure.reject)
  const nextRequest = uniqueRequests(request)
  const result = createDeferred<LoadResult>()
  let bodyBytes = 0
  let count = 0
  const startMs = performance.now() + warmUpMs
  const endMs = startMs + measureMs
  let firstMs = 0
  let isFinished = false

  for (const connection of connections) {
    const onResponse = (response: ResponseSummary) => {
      if (isFinished) return
      if (response.status >= 300)
        return result.reject(new Error(`${request.method} ${request.path}: ${response.status}`))
      const nowMs = performance.now()
      if (nowMs >= startMs) {
        bodyBytes = response.bodyBytes
        // The first response after the warm-up starts the clock and is not counted.
        if (firstMs === 0) firstMs = nowMs
        else count++
        if (nowMs >= endMs && count > 0) {
          isFinished = true
          return result.resolve({ count, seconds: (nowMs - firstMs) / 1000, bodyBytes })
        }
      }
      connection.send(nextRequest(), onResponse)
    }
    connection.send(nextRequest(), onResponse)
  }
  try {
    return await Promise.race([result.promise, failure.promise])
  } finally {
    for (const connection of connections) connection.close()
  }
}

async function runTurns({ clients, requests, order, warmUpMs, turnMs }: TurnsJob): Promise<TurnsResult> {
  const failure = createDeferred<never>()
  const connections = new Map<string, Connection[]>()
  for (const { endpoint } of requests) {
    if (connections.has(endpointKey(endpoint))) continue
    connections.set(endpointKey(endpoint), await openAll(endpoint, clients, failure.reject))
  }
  const nextRequests = requests.map(uniqueRequests)
  const rates: number[][] = requests.map(() => [])
  const result = createDeferred<TurnsResult>()
  const restingConnections = new Set<Connection>()
  let turn = -1
  let endMs = 0
  let firstMs = 0
  let count = 0

  function beginTurn(ms: number): void {
    endMs = performance.now() + ms
    firstMs = 0
    count = 0
    for (const connection of connections.get(endpointKey(requestOf(turn).endpoint))!) {
      if (turn < 0 || restingConnections.delete(connection)) sendNext(connection)
    }
  }

  /** Turn -1 is the warm-up. */
  function requestOf(turnNumber: number): TurnsJob['requests'][number] {
    return requests[order[Math.max(0, turnNumber)]!]!
  }

  function sendNext(connection: Connection): void {
    const requestTurn = turn
    const { endpoint, method, path } = requestOf(requestTurn)
    connection.send(nextRequests[order[Math.max(0, requestTurn)]!]!(), (response) => {
      if (response.status >= 300) return result.reject(new Error(`${method} ${path}: ${response.status}`))
      if (requestTurn === turn) countResponse() // responses to requests of an earlier turn are not counted
      if (turn === order.length) return
      if (endpointKey(requestOf(turn).endpoint) === endpointKey(endpoint)) sendNext(connection)
      else restingConnections.add(connection)
    })
  }

  /** The first response of a turn starts its clock and is not counted. */
  function countResponse(): void {
    const nowMs = performance.now()
    if (firstMs === 0) firstMs = nowMs
    else count++
    if (nowMs < endMs || count === 0) return
    if (turn >= 0) rates[order[turn]!]!.push(count / ((nowMs - firstMs) / 1000))
    turn++
    if (turn === order.length) result.resolve({ rates })
    else beginTurn(turnMs)
  }

  try {
    for (const [key, idleConnections] of connections)
      if (key !== endpointKey(requestOf(0).endpoint))
        for (const connection of idleConnections) restingConnections.add(connection)
    beginTurn(warmUpMs)
    return await Promise.race([result.promise, failure.promise])
  } finally {
    for (const connection of [...connections.values()].flat()) connection.close()
  }
}

/** Connections to one port differ by the user of their certificate. */
const endpointKey = ({ port, cert }: Endpoint): string => `${port} ${cert}`

async function runFanOut({ endpoint, watchers, watch, create, creates }: FanOutJob): Promise<LoadResult> {
  const failure = createDeferred<never>()
  const connections = await openAll(endpoint, watchers, failure.reject)
  const writer = await openConnection(endpoint, failure.reject)
  const nextCreate = uniqueRequests(create)
  const delivery = createDeferred<void>()
  let missingCount = watchers * creates
  const onLines = (count: number) => {
    missingCount -= count
    if (missingCount <= 0) delivery.resolve()
  }
  try {
    const watchRequest = uniqueRequests(watch)()
    await Promise.race([failure.promise, Promise.all(connections.map(({ follow }) => follow(watchRequest, onLines)))])
    const startMs = performance.now()
    for (let createdCount = 0; createdCount < creates; createdCount++) {
      const { status } = await Promise.race([
        failure.promise,
        new Promise<ResponseSummary>((resolve) => writer.send(nextCreate(), resolve)),
      ])
      if (status >= 300) throw new Error(`${create.method} ${create.path}: ${status}`)
    }
    await Promise.race([failure.promise, delivery.promise])
    return { count: watchers * creates, seconds: (performance.now() - startMs) / 1000, bodyBytes: 0 }
  } finally {
    for (const connection of [...connections, writer]) connection.close()
  }
}

const CONCURRENT_HANDSHAKES_MAX = 32

export async function openAll(
  endpoint: Endpoint,
  count: number,
  onBroken: (error: Error) => void,
): Promise<Connection[]> {
  const connections: Connection[] = []
  while (connections.length < count) {
    const batchSize = Math.min(CONCURRENT_HANDSHAKES_MAX, count - connections.length)
    connections.push(
      ...(await Promise.all(Array.from({ length: batchSize }, () => openConnection(endpoint, onBroken)))),
    )
  }
  return connections
}

let numbersUsed = 0

function uniqueRequests(text: RequestText): () => Buffer {
  const create = numberedRequest(text)
  return () => create(++numbersUsed)
}

const CONTENT_TYPES = { POST: 'application/json', DELETE: 'application/json', PATCH: 'application/merge-patch+json' }

/** Returns a function that encodes the request with a number in place of NUMBER. */
export function numberedRequest({ method, path, body }: RequestText): (number: number) => Buffer {
  const text = body ?? ''
  const head =
    `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\nUser-Agent: bench\r\n` +
    (method === 'GET' ? '' : `Content-Type: ${CONTENT_TYPES[method]}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`)
  const template = Buffer.from(`${head}\r\n${text}`)
  const places: number[] = []
  for (let position = template.indexOf(NUMBER); position >= 0; position = template.indexOf(NUMBER, position + 1))
    places.push(position)
  if (places.length === 0) return () => template
  return (number) => {
    const request = Buffer.from(template)
    const digits = String(number).padStart(NUMBER.length, '0')
    for (const position of places) request.write(digits, position, 'latin1')
    return request
  }
}

interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: Error) => void
}

export function createDeferred<T>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = () => {}
  let reject: Deferred<T>['reject'] = () => {}
  const promise = new Promise<T>((settle, fail) => {
    resolve = settle
    reject = fail
  })
  promise.catch(() => {}) // handled where it is raced
  return { promise, resolve, reject }
}
