// Runs a server in this process, with a memory store and a manual clock, and records every object that a response reported
// as stored. `send` passes a request to the server and checks the response and the store.
import { parse as parseYaml } from 'yaml'
import { allGatesOn } from '../../src/api/feature-gates.ts'
import type { Kind } from '../../src/api/kind.ts'
import { ALL_KINDS } from '../../src/api/kinds/index.ts'
import { decodeProtobuf } from '../../src/api/protobuf/decode.ts'
import { decodeEnvelope, PROTOBUF_MEDIA } from '../../src/api/protobuf/envelope.ts'
import { createApiServer } from '../../src/apiserver/api-server.ts'
import { partialObjectMetadata } from '../../src/apiserver/http/protobuf-response.ts'
import { wholeBody } from '../../src/apiserver/http/whole-body.fixture.ts'
import { type ApiResponse, createBuiltIns, versionInfo } from '../../src/apiserver/index.ts'
import { status as statusType } from '../../src/apiserver/openapi/envelope-types.ts'
import { manualClock } from '../../src/base/manual-clock.ts'
import { openMemoryStore } from '../../src/store/index.ts'
import { seededRandom } from '../helpers/random.ts'
import type { FuzzRequest, KnownObject, ServerState } from './generate-requests.ts'
import { NAMESPACES, REVIEW_PATHS } from './generate-requests.ts'
import { collectionPath, SERVED, type ServedKind } from './samples.ts'
import { check } from './validator/index.ts'

export interface FuzzHarness {
  readonly state: ServerState
  /** Sends a request. Returns the response, and the problems of the response and of the store. */
  send(request: FuzzRequest): Promise<{ response: ApiResponse; problems: string[] }>
  /** Compares all stored objects with the recorded ones. */
  compareAll(): Promise<string[]>
  close(): Promise<void>
}

export interface FuzzHarnessOptions {
  readonly seed: number
  readonly kinds?: readonly Kind[] | undefined
}

const ADMIN = { name: 'fuzz', groups: ['system:masters', 'system:authenticated'] }

export async function createFuzzHarness({ seed, kinds = ALL_KINDS }: FuzzHarnessOptions): Promise<FuzzHarness> {
  const clock = manualClock()
  const store = await openMemoryStore({ clock })
  const loggedErrors: string[] = []
  const server = createApiServer({
    store,
    clock,
    random: seededRandom(seed),
    log: {
      debug() {},
      info() {},
      warn() {},
      error: (fields: any, message) =>
        void loggedErrors.push(`${message}: ${fields.err?.stack ?? JSON.stringify(fields)}`),
    },
    kinds,
    gates: allGatesOn,
    authenticator: { authenticate: () => ({ is: 'authenticated', user: ADMIN }), authenticateToken: () => undefined },
    authorizer: { authorize: () => ({ allowed: true }) },
    version: versionInfo(),
  })
  await createBuiltIns(server.objects)
  const records = createRecords()
  let requestCount = 0

  async function handle(request: FuzzRequest): Promise<ApiResponse> {
    let response: ApiResponse | undefined
    let failure: unknown
    const handling = server
      .handle({
        method: request.method,
        path: request.path,
        query: new URLSearchParams(request.query),
        headers: request.headers,
        headerNames: () => Object.keys(request.headers),
        headerValues: (name) => (request.headers[name] === undefined ? [] : [request.headers[name]]),
        readBody: async () => request.body ?? new Uint8Array(),
      })
      .then(
        (value) => {
          response = value
        },
        (error) => {
          failure = error
        },
      )
    // A request for a future resourceVersion waits, so the clock must advance.
    for (let turns = 0; !response && failure === undefined; turns++) {
      await nextTurn()
      if (turns > 50) await clock.advance(50)
    }
    await handling
    if (!response) throw failure
    response.seats?.release()
    return response.longBody ? { ...response, body: wholeBody(response) } : response
  }

  const readBack = (path: string): Promise<ApiResponse> =>
    handle({ intent: 'read back', method: 'GET', path, query: '', headers: {} })

  async function send(request: FuzzRequest): Promise<{ response: ApiResponse; problems: string[] }> {
    if (++requestCount % 25 === 0) await clock.advance(1_000)
    const problems: string[] = []
    const revisionBefore = store.revision
    const startedMs = clock.nowMs()
    const response = await handle(request)
    const hasWaited = clock.nowMs() !== startedMs // objects may have expired during the wait
    problems.push(...loggedErrors.splice(0))
    checkResponse(request, response, revisionBefore, problems)
    if (response.stream) await checkStream(response, problems)
    const mayChangeStore = isWrite(request.method) && response.status < 300 && !isDryRun(request) && !isReview(request)
    if (store.revision === revisionBefore + 1 && isOverQuota(response)) await checkQuotaEvent(request, problems)
    else if (store.revision !== revisionBefore && !mayChangeStore && !hasWaited) {
      problems.push(
        `the store went from ${revisionBefore} to ${store.revision} although the request must not change it`,
      )
    }
    if (response.status < 300 && isWrite(request.method) && !isReview(request))
      await checkWrite(request, response, problems)
    return { response, problems }
  }

  /** Checks that a request rejected by a quota wrote one event and nothing else. */
  async function checkQuotaEvent(request: FuzzRequest, problems: string[]): Promise<void> {
    const { namespace, name } = addressOf(request.path)!
    const address = addressOf(`/api/v1/namespaces/${namespace}/events`)!
    const { items } = parse(await readBack(`/api/v1/namespaces/${namespace}/events`), problems)
    const newEvents = items.filter(({ metadata }: any) => metadata.resourceVersion === String(store.revision))
    const [event] = newEvents
    if (newEvents.length !== 1 || event.reason !== 'ExceededQuota' || event.involvedObject.name !== name) {
      problems.push(`a rejected request changed the store to ${store.revision} other than by its event`)
    }
    for (const item of newEvents) {
      records.set({ ...address, name: item.metadata.name, object: { kind: 'Event', apiVersion: 'v1', ...item } })
    }
  }

  /** Checks that the response of a write equals the stored object and is valid. */
  async function checkWrite(request: FuzzRequest, response: ApiResponse, problems: string[]): Promise<void> {
    const address = addressOf(request.path)
    if (!address) return void problems.push('a write was accepted on a path that is not a resource')
    const body = parse(response, problems)
    if (body === undefined) return
    if (request.method === 'DELETE' && address.name === '')
      return void problems.push(...(await compareCollection(address)))
    // Fields without a protobuf number are not sent, so the stored object is checked in place of a protobuf response.
    const isObject = body.kind === address.served.kind && body.metadata !== undefined && !isProtobuf(response)
    const name: string = address.name || nameIn(body)
    const oldRecord = records.get({ ...address, name })
    const isCreate = response.status === 201 && address.subresource === ''
    if (isObject && request.method !== 'DELETE') {
      problems.push(...check(address.served.kind, body, isCreate ? undefined : oldRecord?.object))
      if (!isCreate && !oldRecord) problems.push('an object that was never created was updated')
    }
    const nameInBody = request.method === 'PUT' ? readNameInBody(request) : undefined
    if (nameInBody !== undefined && nameInBody !== name) problems.push(`a PUT of ${nameInBody} changed ${name}`)
    if (isDryRun(request) || isDryRunDelete(request)) return
    const readResponse = await readBack(
      `${collectionPath(address.apiVersion, address.served, address.namespace)}/${encodeURIComponent(name)}`,
    )
    if (readResponse.status === 404) {
      const isExpected =
        request.method === 'DELETE' ||
        address.subresource === 'eviction' ||
        isTerminating(body) ||
        isTerminating(oldRecord?.object)
      if (!isExpected) problems.push(`${name} does not exist after a response with ${response.status}`)
      records.delete({ ...address, name })
      return
    }
    const storedObject = parse(readResponse, problems)
    if (readResponse.status !== 200) return void problems.push(`reading ${name} back returned ${readResponse.status}`)
    if (isObject && isPlainJson(response) && Buffer.compare(response.body!, readResponse.body!) !== 0) {
      problems.push(`read back differs\n  ${text(readResponse).slice(0, 1_000)}`)
    }
    if (request.method === 'DELETE' || !isObject) {
      problems.push(...check(address.served.kind, storedObject, isCreate ? undefined : oldRecord?.object))
    }
    records.set({ ...address, name, object: storedObject })
  }

  async function compareCollection(address: Address): Promise<string[]> {
    const problems: string[] = []
    const path = collectionPath(address.apiVersion, address.served, address.namespace)
    const response = await readBack(path)
    const list = parse(response, problems)
    if (response.status !== 200) return [`listing ${path} returned ${response.status}: ${text(response).slice(0, 300)}`]
    const listedNames = new Set<string>()
    for (const item of list.items) {
      const object = { kind: address.served.kind, apiVersion: address.apiVersion, ...item }
      const { name } = item.metadata
      listedNames.add(name)
      const oldRecord = records.get({ ...address, name })
      if (!oldRecord) problems.push(`${path} lists ${name}, which no response reported`)
      problems.push(
        ...check(address.served.kind, object, oldRecord?.object ?? object).map(
          (problem) => `${path}/${name} ${problem}`,
        ),
      )
      records.set({ ...address, name, object })
    }
    for (const oldRecord of records.listIn(address)) {
      if (listedNames.has(oldRecord.name)) continue
      if (!isTerminating(oldRecord.object) && !address.mayBeDeleted)
        problems.push(`${path} no longer lists ${oldRecord.name}`)
      records.delete(oldRecord)
    }
    return problems
  }

  // Records the built-in objects.
  await compareCollection(addressOf('/api/v1/namespaces')!)
  await compareCollection(addressOf('/apis/scheduling.k8s.io/v1/priorityclasses')!)
  for (const name of NAMESPACES) {
    const body = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }))
    await send({ intent: 'setup', method: 'POST', path: '/api/v1/namespaces', query: '', headers: {}, body })
  }

  return {
    state: {
      get objects() {
        return records.listAll()
      },
      get revision() {
        return store.revision
      },
    },
    send,
    async compareAll() {
      const problems: string[] = []
      for (const served of SERVED) {
        for (const namespace of served.namespaced ? NAMESPACES : ['']) {
          const apiVersion = served.apiVersions.at(-1)!
          problems.push(...(await compareCollection({ served, apiVersion, namespace, name: '', subresource: '' })))
        }
      }
      const { watchers } = store.stats()
      if (watchers > 0) problems.push(`${watchers} watches were left open`)
      if (Object.hasOwn(Object.prototype, 'polluted')) problems.push('Object.prototype was polluted')
      return problems
    },
    close: () => store.close(),
  }
}

const isOverQuota = (response: ApiResponse) => response.status === 403 && text(response).includes('exceeded quota')

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

interface Address {
  readonly served: ServedKind
  readonly apiVersion: string
  readonly namespace: string
  readonly name: string
  readonly subresource: string
  /** Whether objects may be missing because the collection was deleted. */
  readonly mayBeDeleted?: boolean
}

/** Parses a path without the router of the server. */
function addressOf(path: string): Address | undefined {
  const parts = path.split('/').filter((part, i, { length }) => part !== '' || (i !== 0 && i !== length - 1))
  const apiVersion = parts[0] === 'api' ? parts[1] : `${parts[1]}/${parts[2]}`
  let segments = parts.slice(parts[0] === 'api' ? 2 : 3).map(decodeURIComponent)
  let namespace = ''
  if (segments[0] === 'namespaces' && segments.length > 2 && !['status', 'finalize'].includes(segments[2]!)) {
    namespace = segments[1]!
    segments = segments.slice(2)
  }
  const served = SERVED.find(({ plural, apiVersions }) => plural === segments[0] && apiVersions.includes(apiVersion!))
  if (!served) return undefined
  return {
    served,
    apiVersion: apiVersion!,
    namespace,
    name: segments[1] ?? '',
    subresource: segments[2] ?? '',
    mayBeDeleted: true,
  }
}

function createRecords() {
  const byKey = new Map<string, KnownObject>()
  let list: KnownObject[] | undefined
  type Key = Pick<KnownObject, 'served' | 'namespace' | 'name'>
  const keyOf = ({ served, namespace, name }: Key) => `${served.plural} ${namespace} ${name}`
  return {
    get: (key: Key) => byKey.get(keyOf(key)),
    listAll: () => (list ??= [...byKey.values()]),
    listIn: ({ served, namespace }: Omit<Key, 'name'>) =>
      [...byKey.values()].filter((record) => record.served.plural === served.plural && record.namespace === namespace),
    set({ served, apiVersion, namespace, name, object }: KnownObject) {
      byKey.set(keyOf({ served, namespace, name }), { served, apiVersion, namespace, name, object })
      list = undefined
    },
    delete(key: Key) {
      byKey.delete(keyOf(key))
      list = undefined
    },
  }
}

const isWrite = (method: string): boolean => ['POST', 'PUT', 'PATCH', 'DELETE'].includes(method)
const isReview = ({ path }: FuzzRequest): boolean => (REVIEW_PATHS as readonly string[]).includes(path)
const isDryRun = ({ query }: FuzzRequest): boolean => new URLSearchParams(query).getAll('dryRun').includes('All')
const isDryRunDelete = ({ method, body }: FuzzRequest): boolean =>
  method !== 'PUT' && method !== 'PATCH' && /"dryRun":\["All"\]/.test(Buffer.from(body ?? []).toString('latin1'))
const isTerminating = (object: any): boolean => object?.metadata?.deletionTimestamp !== undefined
const isPlainJson = ({ headers }: ApiResponse): boolean => headers['content-type'] === 'application/json'
const text = ({ body }: ApiResponse): string => Buffer.from(body ?? []).toString('utf8')

function readNameInBody({ body }: FuzzRequest): string | undefined {
  try {
    return JSON.parse(Buffer.from(body ?? []).toString('utf8')).metadata.name
  } catch {
    return undefined
  }
}

/** Returns the name in a response: an object, its metadata, or a table with one row. */
const nameIn = (body: any): string => body.metadata?.name ?? body.rows?.[0]?.object?.metadata?.name

function parse(response: ApiResponse, problems: string[]): any {
  const isYaml = response.headers['content-type'] === 'application/yaml'
  try {
    if (isProtobuf(response)) return parseProtobuf(response.body!)
    return isYaml ? parseYaml(text(response)) : JSON.parse(text(response))
  } catch {
    problems.push(`a response with ${response.status} is neither JSON, YAML nor protobuf`)
    return undefined
  }
}

function parseProtobuf(bytes: Uint8Array): object {
  const { apiVersion, kind, raw } = decodeEnvelope(bytes)
  const group = apiVersion.includes('/') ? apiVersion.split('/')[0] : ''
  const served = ALL_KINDS.find((candidate) => candidate.group === group && candidate.kind === kind)
  const type = kind === 'Status' ? statusType : kind === 'PartialObjectMetadata' ? partialObjectMetadata : served!.type
  return { apiVersion, kind, ...decodeProtobuf(type, raw) }
}

const isProtobuf = ({ headers }: ApiResponse): boolean => `${headers['content-type']}`.startsWith(PROTOBUF_MEDIA)

const RESPONSE_BYTES_MAX = 64 * 1024

function checkResponse(request: FuzzRequest, response: ApiResponse, revision: number, problems: string[]): void {
  const { status } = response
  if (!Number.isInteger(status) || status < 200 || status > 599) problems.push(`status ${status}`)
  if (!response.headers['content-type'] && response.body?.length) problems.push('the response has no content type')
  if (status >= 500 && !isFutureVersion(request, response, revision)) problems.push(`status ${status}`)
  if (request.isValid && ![201, 403, 404, 409].includes(status))
    problems.push(`a valid object was rejected with ${status}`)
  if (status < 400) return
  if (response.headers['content-type'] === 'text/plain; charset=utf-8') return // health checks return plain text
  const body = parse(response, problems)
  if (body === undefined) return
  if (body.kind !== 'Status' || body.apiVersion !== 'v1' || body.status !== 'Failure')
    problems.push('no failure Status')
  if (body.code !== status) problems.push(`a Status of code ${body.code} with ${status}`)
  if (!body.reason || !body.message) problems.push('a Status without reason or message')
  if (response.body!.length > RESPONSE_BYTES_MAX) problems.push(`an error of ${response.body!.length} bytes`)
  if (status !== 422) return
  const causes = body.details?.causes ?? []
  if (
    causes.length === 0 ||
    causes.some((cause: any) => !cause.reason || !cause.message || cause.field === undefined)
  ) {
    problems.push('422 without causes')
  }
}

/** Whether a 504 is expected, because the requested resourceVersion does not exist yet. */
function isFutureVersion({ query }: FuzzRequest, response: ApiResponse, revision: number): boolean {
  const parameters = new URLSearchParams(query)
  const requestedVersions = [parameters.get('resourceVersion'), versionInToken(parameters.get('continue'))].map(Number)
  return (
    response.status === 504 &&
    text(response).includes('ResourceVersionTooLarge') &&
    requestedVersions.some((n) => n > revision)
  )
}

function versionInToken(token: string | null): string {
  try {
    return String(JSON.parse(Buffer.from(token ?? '', 'base64url').toString('utf8')).rv)
  } catch {
    return ''
  }
}

/** Opens the stream, reads it for a few turns of the event loop, and disconnects. */
async function checkStream(response: ApiResponse, problems: string[]): Promise<void> {
  const chunks: Uint8Array[] = []
  const onClose: (() => void)[] = []
  let isOpen = true
  const close = () => {
    if (!isOpen) return
    isOpen = false
    for (const run of onClose) run()
  }
  response.stream!({
    write: (chunk) => void chunks.push(chunk),
    pendingBytes: 0,
    onDrain: (run) => run(),
    end: close,
    cut: close,
    onClose: (run) => void onClose.push(run),
  })
  for (let turn = 0; turn < 4; turn++) await nextTurn()
  close()
  if (isProtobuf(response)) return checkFrames(Buffer.concat(chunks), problems)
  const lines = Buffer.concat(chunks).toString('utf8').split('\n').slice(0, -1)
  for (const line of lines) {
    try {
      const { type, object } = JSON.parse(line)
      if (!['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'].includes(type) || !object)
        problems.push(`a watch sent ${line.slice(0, 200)}`)
      if (type === 'ERROR' && object.code >= 500) problems.push(`a watch ended with ${line.slice(0, 300)}`)
    } catch {
      problems.push(`a watch sent no JSON: ${line.slice(0, 200)}`)
    }
  }
}

/** Checks that the bytes of a protobuf watch are frames: a length of four bytes and as many bytes. */
function checkFrames(bytes: Buffer, problems: string[]): void {
  for (let position = 0; position < bytes.length; ) {
    const end = position + 4 <= bytes.length ? position + 4 + bytes.readUInt32BE(position) : Number.POSITIVE_INFINITY
    if (end > bytes.length) return void problems.push('a watch sent an incomplete protobuf frame')
    position = end
  }
}
