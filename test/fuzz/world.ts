// A server in this process, on a memory store and the manual clock, and beside it a record of what every response said is
// stored. `send` passes a request to the server and checks everything that must hold afterwards.
import { parse as parseYaml } from 'yaml'
import { allGatesOn } from '../../src/api/feature-gates.ts'
import type { Kind } from '../../src/api/kind.ts'
import { ALL_KINDS } from '../../src/api/kinds/index.ts'
import { createApiServer } from '../../src/apiserver/api-server.ts'
import { type ApiResponse, createBuiltIns, versionInfo } from '../../src/apiserver/index.ts'
import { manualClock } from '../../src/base/manual-clock.ts'
import { openMemoryStore } from '../../src/store/index.ts'
import { seededRandom } from '../helpers/random.ts'
import type { FuzzRequest, Knowledge, KnownObject } from './generate.ts'
import { NAMESPACES, QUESTION_PATHS } from './generate.ts'
import { collectionPath, SERVED, type Served } from './samples.ts'
import { check } from './validator/index.ts'

export interface World {
  readonly known: Knowledge
  /** Returns the response, and the problems in it or in the state after it. */
  send(request: FuzzRequest): Promise<{ answer: ApiResponse; wrong: string[] }>
  /** Compares everything stored with everything that was returned. */
  compareAll(): Promise<string[]>
  close(): Promise<void>
}

export interface WorldOptions {
  readonly seed: number
  readonly kinds?: readonly Kind[] | undefined
}

const ADMIN = { name: 'fuzz', groups: ['system:masters', 'system:authenticated'] }
/** Errors that the server logged. */
type Mistakes = string[]

export async function createWorld({ seed, kinds = ALL_KINDS }: WorldOptions): Promise<World> {
  const clock = manualClock()
  const store = await openMemoryStore({ clock })
  const mistakes: Mistakes = []
  const server = createApiServer({
    store,
    clock,
    random: seededRandom(seed),
    log: {
      debug() {},
      info() {},
      warn() {},
      error: (fields: any, message) => void mistakes.push(`${message}: ${fields.err?.stack ?? JSON.stringify(fields)}`),
    },
    kinds,
    gates: allGatesOn,
    authenticator: { authenticate: () => ({ is: 'authenticated', user: ADMIN }), authenticateToken: () => undefined },
    authorizer: { authorize: () => ({ allowed: true }) },
    version: versionInfo(),
  })
  await createBuiltIns(server.objects)
  const records = createRecords()
  let sent = 0

  async function handle(request: FuzzRequest): Promise<ApiResponse> {
    let answer: ApiResponse | undefined
    let failure: unknown
    const done = server
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
          answer = value
        },
        (error) => {
          failure = error
        },
      )
    // The server waits only for a future resourceVersion; the test then advances the clock.
    for (let turns = 0; !answer && failure === undefined; turns++) {
      await nextTurn()
      if (turns > 50) await clock.advance(50)
    }
    await done
    if (!answer) throw failure
    return answer
  }

  const read = (path: string): Promise<ApiResponse> =>
    handle({ about: 'read back', method: 'GET', path, query: '', headers: {} })

  async function send(request: FuzzRequest): Promise<{ answer: ApiResponse; wrong: string[] }> {
    if (++sent % 25 === 0) await clock.advance(1_000)
    const wrong: string[] = []
    const before = store.revision
    const startedMs = clock.nowMs()
    const answer = await handle(request)
    const waited = clock.nowMs() !== startedMs // objects that expired meanwhile were not changed by the request
    wrong.push(...mistakes.splice(0))
    checkAnswer(request, answer, before, wrong)
    if (answer.stream) await tryStream(answer.stream, wrong)
    const changes = isWrite(request.method) && answer.status < 300 && !isDryRun(request) && !isQuestion(request)
    if (store.revision === before + 1 && isOverQuota(answer)) await followRefusal(request, wrong)
    else if (store.revision !== before && !changes && !waited) {
      wrong.push(`the store went from ${before} to ${store.revision} on a request that may change nothing`)
    }
    if (answer.status < 300 && isWrite(request.method) && !isQuestion(request)) await followUp(request, answer, wrong)
    return { answer, wrong }
  }

  /** A quota that rejects a change records an event on the object, and does nothing else. */
  async function followRefusal(request: FuzzRequest, wrong: string[]): Promise<void> {
    const { namespace, name } = addressOf(request.path)!
    const address = addressOf(`/api/v1/namespaces/${namespace}/events`)!
    const { items } = parse(await read(`/api/v1/namespaces/${namespace}/events`), wrong)
    const written = items.filter(({ metadata }: any) => metadata.resourceVersion === String(store.revision))
    const [event] = written
    if (written.length !== 1 || event.reason !== 'ExceededQuota' || event.involvedObject.name !== name) {
      wrong.push(`a rejected request changed the store to ${store.revision} other than by its event`)
    }
    for (const item of written) {
      records.set({ ...address, name: item.metadata.name, object: { kind: 'Event', apiVersion: 'v1', ...item } })
    }
  }

  /** The response of a write equals the stored object, and passes the independent validator. */
  async function followUp(request: FuzzRequest, answer: ApiResponse, wrong: string[]): Promise<void> {
    const address = addressOf(request.path)
    if (!address) return void wrong.push('a write was accepted on a path that is no resource')
    const body = parse(answer, wrong)
    if (body === undefined) return
    if (request.method === 'DELETE' && address.name === '')
      return void wrong.push(...(await compareCollection(address)))
    const isObject = body.kind === address.served.kind && body.metadata !== undefined
    const name: string = address.name || nameIn(body)
    const old = records.get({ ...address, name })
    const isCreate = answer.status === 201 && address.subresource === ''
    if (isObject && request.method !== 'DELETE') {
      wrong.push(...check(address.served.kind, body, isCreate ? undefined : old?.object))
      if (!isCreate && !old) wrong.push('an object was updated that was never created')
    }
    const meant = request.method === 'PUT' ? nameSent(request) : undefined
    if (meant !== undefined && meant !== name) wrong.push(`a PUT of ${meant} was taken for ${name}`)
    if (isDryRun(request) || isDryRunDelete(request)) return
    const stored = await read(
      `${collectionPath(address.apiVersion, address.served, address.namespace)}/${encodeURIComponent(name)}`,
    )
    if (stored.status === 404) {
      const gone =
        request.method === 'DELETE' || address.subresource === 'eviction' || isGoing(body) || isGoing(old?.object)
      if (!gone) wrong.push(`${name} was answered with ${answer.status} and is not there afterwards`)
      records.delete({ ...address, name })
      return
    }
    const now = parse(stored, wrong)
    if (stored.status !== 200) return void wrong.push(`reading ${name} back answered ${stored.status}`)
    if (isObject && isPlain(answer) && Buffer.compare(answer.body!, stored.body!) !== 0) {
      wrong.push(`read back differs\n  ${text(stored).slice(0, 1_000)}`)
    }
    if (request.method === 'DELETE' || !isObject) {
      wrong.push(...check(address.served.kind, now, isCreate ? undefined : old?.object))
    }
    records.set({ ...address, name, object: now })
  }

  async function compareCollection(address: Address): Promise<string[]> {
    const wrong: string[] = []
    const path = collectionPath(address.apiVersion, address.served, address.namespace)
    const answer = await read(path)
    const list = parse(answer, wrong)
    if (answer.status !== 200) return [`listing ${path} answered ${answer.status}: ${text(answer).slice(0, 300)}`]
    const seen = new Set<string>()
    for (const item of list.items) {
      const object = { kind: address.served.kind, apiVersion: address.apiVersion, ...item }
      const { name } = item.metadata
      seen.add(name)
      const old = records.get({ ...address, name })
      if (!old) wrong.push(`${path} lists ${name}, which no response reported`)
      wrong.push(...check(address.served.kind, object, old?.object ?? object).map((why) => `${path}/${name} ${why}`))
      records.set({ ...address, name, object })
    }
    for (const old of records.in(address)) {
      if (seen.has(old.name)) continue
      if (!isGoing(old.object) && !address.mayVanish) wrong.push(`${path} no longer lists ${old.name}`)
      records.delete(old)
    }
    return wrong
  }

  await compareCollection(addressOf('/api/v1/namespaces')!) // records the built-in namespaces
  for (const name of NAMESPACES) {
    const body = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }))
    await send({ about: 'setup', method: 'POST', path: '/api/v1/namespaces', query: '', headers: {}, body })
  }

  return {
    known: {
      get objects() {
        return records.all()
      },
      get revision() {
        return store.revision
      },
    },
    send,
    async compareAll() {
      const wrong: string[] = []
      for (const served of SERVED) {
        for (const namespace of served.namespaced ? NAMESPACES : ['']) {
          const apiVersion = served.apiVersions.at(-1)!
          wrong.push(...(await compareCollection({ served, apiVersion, namespace, name: '', subresource: '' })))
        }
      }
      const { watchers } = store.stats()
      if (watchers > 0) wrong.push(`${watchers} watches were left open`)
      if (Object.hasOwn(Object.prototype, 'polluted')) wrong.push('Object.prototype was polluted')
      return wrong
    },
    close: () => store.close(),
  }
}

const isOverQuota = (answer: ApiResponse) => answer.status === 403 && text(answer).includes('exceeded quota')

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

interface Address {
  readonly served: Served
  readonly apiVersion: string
  readonly namespace: string
  readonly name: string
  readonly subresource: string
  /** A collection was just deleted: missing objects are expected. */
  readonly mayVanish?: boolean
}

/** Parses a path independently of the server's router. */
function addressOf(path: string): Address | undefined {
  const parts = path.split('/').filter((part, i, all) => part !== '' || (i !== 0 && i !== all.length - 1))
  const apiVersion = parts[0] === 'api' ? parts[1] : `${parts[1]}/${parts[2]}`
  let rest = parts.slice(parts[0] === 'api' ? 2 : 3).map(decodeURIComponent)
  let namespace = ''
  if (rest[0] === 'namespaces' && rest.length > 2 && !['status', 'finalize'].includes(rest[2]!)) {
    namespace = rest[1]!
    rest = rest.slice(2)
  }
  const served = SERVED.find(({ plural, apiVersions }) => plural === rest[0] && apiVersions.includes(apiVersion!))
  if (!served) return undefined
  return {
    served,
    apiVersion: apiVersion!,
    namespace,
    name: rest[1] ?? '',
    subresource: rest[2] ?? '',
    mayVanish: true,
  }
}

function createRecords() {
  const byKey = new Map<string, KnownObject>()
  let list: KnownObject[] | undefined
  type Key = Pick<KnownObject, 'served' | 'namespace' | 'name'>
  const keyOf = ({ served, namespace, name }: Key) => `${served.plural} ${namespace} ${name}`
  return {
    get: (key: Key) => byKey.get(keyOf(key)),
    all: () => (list ??= [...byKey.values()]),
    in: ({ served, namespace }: Omit<Key, 'name'>) =>
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
const isQuestion = ({ path }: FuzzRequest): boolean => (QUESTION_PATHS as readonly string[]).includes(path)
const isDryRun = ({ query }: FuzzRequest): boolean => new URLSearchParams(query).getAll('dryRun').includes('All')
const isDryRunDelete = ({ method, body }: FuzzRequest): boolean =>
  method !== 'PUT' && method !== 'PATCH' && /"dryRun":\["All"\]/.test(Buffer.from(body ?? []).toString('latin1'))
const isGoing = (object: any): boolean => object?.metadata?.deletionTimestamp !== undefined
const isPlain = ({ headers }: ApiResponse): boolean => headers['content-type'] === 'application/json'
const text = ({ body }: ApiResponse): string => Buffer.from(body ?? []).toString('utf8')

function nameSent({ body }: FuzzRequest): string | undefined {
  try {
    return JSON.parse(Buffer.from(body ?? []).toString('utf8')).metadata.name
  } catch {
    return undefined
  }
}

/** The name in a response of any form: an object, its metadata, or a table with one row. */
const nameIn = (body: any): string => body.metadata?.name ?? body.rows?.[0]?.object?.metadata?.name

function parse(answer: ApiResponse, wrong: string[]): any {
  const isYaml = answer.headers['content-type'] === 'application/yaml'
  try {
    return isYaml ? parseYaml(text(answer)) : JSON.parse(text(answer))
  } catch {
    wrong.push(`an answer of ${answer.status} is neither JSON nor YAML`)
    return undefined
  }
}

const ANSWER_BYTES_MAX = 64 * 1024

function checkAnswer(request: FuzzRequest, answer: ApiResponse, revision: number, wrong: string[]): void {
  const { status } = answer
  if (!Number.isInteger(status) || status < 200 || status > 599) wrong.push(`status ${status}`)
  if (!answer.headers['content-type'] && answer.body?.length) wrong.push('the answer has no content type')
  if (status >= 500 && !isFutureVersion(request, answer, revision)) wrong.push(`status ${status}`)
  if (request.valid && ![201, 403, 404, 409].includes(status)) wrong.push(`a valid object was refused with ${status}`)
  if (status < 400) return
  if (answer.headers['content-type'] === 'text/plain; charset=utf-8') return // health checks speak plainly
  const body = parse(answer, wrong)
  if (body === undefined) return
  if (body.kind !== 'Status' || body.apiVersion !== 'v1' || body.status !== 'Failure') wrong.push('no failure Status')
  if (body.code !== status) wrong.push(`a Status of code ${body.code} with ${status}`)
  if (!body.reason || !body.message) wrong.push('a Status without reason or message')
  if (answer.body!.length > ANSWER_BYTES_MAX) wrong.push(`an error of ${answer.body!.length} bytes`)
  if (status !== 422) return
  const causes = body.details?.causes ?? []
  if (
    causes.length === 0 ||
    causes.some((cause: any) => !cause.reason || !cause.message || cause.field === undefined)
  ) {
    wrong.push('422 without causes')
  }
}

/** The only expected 5xx: a resourceVersion that does not exist yet. */
function isFutureVersion({ query }: FuzzRequest, answer: ApiResponse, revision: number): boolean {
  const parameters = new URLSearchParams(query)
  const asked = [parameters.get('resourceVersion'), versionInToken(parameters.get('continue'))].map(Number)
  return answer.status === 504 && text(answer).includes('ResourceVersionTooLarge') && asked.some((n) => n > revision)
}

function versionInToken(token: string | null): string {
  try {
    return String(JSON.parse(Buffer.from(token ?? '', 'base64url').toString('utf8')).rv)
  } catch {
    return ''
  }
}

/** Opens the stream, lets it run for a few turns, and disconnects. */
async function tryStream(stream: NonNullable<ApiResponse['stream']>, wrong: string[]): Promise<void> {
  const chunks: Uint8Array[] = []
  const onClose: (() => void)[] = []
  let open = true
  const close = () => {
    if (!open) return
    open = false
    for (const run of onClose) run()
  }
  stream({
    write: (chunk) => void chunks.push(chunk),
    pendingBytes: 0,
    onDrain: (run) => run(),
    end: close,
    cut: close,
    onClose: (run) => void onClose.push(run),
  })
  for (let turn = 0; turn < 4; turn++) await nextTurn()
  close()
  const lines = Buffer.concat(chunks).toString('utf8').split('\n').slice(0, -1)
  for (const line of lines) {
    try {
      const { type, object } = JSON.parse(line)
      if (!['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'].includes(type) || !object)
        wrong.push(`a watch sent ${line.slice(0, 200)}`)
      if (type === 'ERROR' && object.code >= 500) wrong.push(`a watch ended with ${line.slice(0, 300)}`)
    } catch {
      wrong.push(`a watch sent no JSON: ${line.slice(0, 200)}`)
    }
  }
}
