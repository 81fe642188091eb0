// Fixture of the tests that need an API server: the server on a memory store and a manual clock, called without a socket. By
// default, an administrator sends the requests. With SERVER_ANSWERS=stock in the environment, the clients of the fixture behave
// like those of a stock API server (client/stock-server.fixture.ts).
import { parseFeatureGates } from '../api/feature-gates.ts'
import type { ExpansionQuota } from '../api/kind.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import { decodeEnvelope, PROTOBUF_MEDIA } from '../api/protobuf/envelope.ts'
import { ProtobufReader } from '../api/protobuf/reader.ts'
import type { Random } from '../base/clock.ts'
import { silentLog } from '../base/log.ts'
import { type ManualClock, manualClock } from '../base/manual-clock.ts'
import type { Client } from '../client/client.ts'
import { asStock } from '../client/stock-server.fixture.ts'
import { type HistoryOptions, type Medium, openMemoryStore, type Store, type ValueTransformer } from '../store/index.ts'
import { type AdmissionPlugin, standardAdmission } from './admission/index.ts'
import { type ApiServer, type ApiServerOptions, createApiServer } from './api-server.ts'
import type { Audit } from './audit/index.ts'
import { createBuiltIns, SYSTEM_USER } from './bootstrap.ts'
import { certificateAdmission } from './certificates/index.ts'
import type { ApiResponse } from './http/messages.ts'
import { wholeBody } from './http/whole-body.fixture.ts'
import { inProcessClient } from './in-process/client.ts'
import { createNodeAuthorization } from './node-authorizer/index.ts'
import { type OperationBoard, openOperationBoard } from './operations/operation-board.ts'
import { componentAuthorizer, recordRuleUse } from './rbac/component-access.fixture.ts'
import { isInProcess, userOf } from './rbac/component-roles.ts'
import type { Component } from './rbac/component-rules.ts'
import { createBootstrapRoles, createRbac } from './rbac/index.ts'
import { parseRuntimeConfig } from './resources.ts'
import { type Authenticator, type Authorizer, createAuthenticator, issueKeylessCa } from './security/index.ts'
import type { AccountTokens } from './service-accounts/index.ts'
import { createTestAccountTokens } from './service-accounts/test-tokens.fixture.ts'
import { createJournal, type Journal } from './timeline/journal.ts'
import { versionInfo } from './version.ts'

export interface ServerFixtureOptions {
  /** Value of --feature-gates. */
  readonly gates?: string
  readonly expansionQuota?: ExpansionQuota
  /** Value of --runtime-config. */
  readonly runtimeConfig?: string
  readonly history?: HistoryOptions
  /** Storage that outlives the server, so that a test can start another server on it. */
  readonly medium?: Medium
  /** Encrypts stored values. */
  readonly transformer?: ValueTransformer
  readonly random?: Random
  /** Default: allows all requests. */
  readonly authorizer?: Authorizer
  readonly limits?: ApiServerOptions['limits']
  /** Connections to node agents. Default: none. */
  readonly nodeConnections?: ApiServerOptions['nodeConnections']
  /** Default: every request is sent by an administrator. */
  readonly authenticator?: Authenticator
  /**
   * Authorizes nodes by their pods and other users by roles and bindings, with the bootstrap roles. The user is an
   * administrator, who can impersonate others.
   */
  readonly usesRbac?: boolean
  /** With `usesRbac`, records which rules the components of the server process use, by their users. */
  readonly recordsRuleUse?: boolean
  readonly audit?: Audit
  /** Admission plugins in addition to the standard ones, if `usesRbac` is not set. */
  readonly admissionPlugins?: readonly AdmissionPlugin[]
  /** Issues and accepts the tokens of ServiceAccounts. A request with an Authorization header is authenticated by its token. */
  readonly hasAccountTokens?: boolean
  /**
   * The journal of volume changes: `own`, or `shared` as on a server that shares its store with others. Default: none.
   */
  readonly journal?: 'own' | 'shared'
  /** The API server that the clients of the fixture emulate. Default: the environment variable SERVER_ANSWERS, or Stowage. */
  readonly answers?: 'stowage' | 'stock'
}

export interface ServerFixture {
  readonly server: ApiServer
  readonly authorizer: Authorizer
  readonly store: Store
  readonly operations: OperationBoard
  readonly journal?: Journal
  readonly clock: ManualClock
  readonly accountTokens?: AccountTokens
  /** Whether the clients behave like those of a stock API server. */
  readonly isStock: boolean
  /** Returns a client of an administrator. */
  client(): Client
  /**
   * Returns a client with the rules of a component (component-rules.ts). A request that they do not grant is rejected. With
   * several components, which share code, the rules of each must grant it.
   */
  clientOf(...components: readonly Component[]): Client
  get(url: string, headers?: Headers): Promise<FixtureResponse>
  post(url: string, body: unknown, headers?: Headers): Promise<FixtureResponse>
  put(url: string, body: unknown, headers?: Headers): Promise<FixtureResponse>
  patch(url: string, body: unknown, type?: PatchType): Promise<FixtureResponse>
  delete(url: string, options?: unknown): Promise<FixtureResponse>
  call(method: string, url: string, body?: string | Uint8Array, headers?: Headers): Promise<FixtureResponse>
  watch(url: string, headers?: Headers): Promise<FixtureWatch>
  /** Runs the event loop and slowly advances the clock until the condition is true. */
  waitUntil(condition: () => Promise<boolean> | boolean, expected: string): Promise<void>
  /** Advances the clock until the promise settles. */
  advanceUntilSettled<T>(promise: Promise<T>): Promise<T>
}

/** Parsed JSON; tests assert its shape. */
export type Json = any

type Headers = Readonly<Record<string, string>>
type PatchType = 'json' | 'merge' | 'strategic-merge'

interface FixtureResponse {
  readonly status: number
  readonly headers: ApiResponse['headers']
  readonly bytes: Uint8Array
  readonly text: string
  /** The body as JSON. */
  readonly json: Json
}

interface FixtureWatch {
  /** The events received so far. */
  readonly events: readonly { type: string; object: Json }[]
  readonly isEnded: boolean
  /** Resolves when the condition is true; rejects after IDLE_TICKS_MAX ticks. */
  waitUntil(condition: (events: readonly { type: string; object: Json }[]) => boolean): Promise<void>
  /** Closes the connection of the watch, as a client does. */
  close(): void
}

const WAIT_TICKS_MAX = 5_000
/** Short, so that tests that advance the clock see watches being closed by the server. */
const STOCK_WATCH_MS = 31_000
export const ADMIN = { name: 'tester', groups: ['system:masters', 'system:authenticated'] }

export async function createServerFixture(options: ServerFixtureOptions = {}): Promise<ServerFixture> {
  const clock = manualClock()
  const isStock = (options.answers ?? process.env.SERVER_ANSWERS) === 'stock'
  const store = await openMemoryStore({
    clock,
    history: options.history,
    medium: options.medium,
    transformer: options.transformer,
  })
  const rbac = options.usesRbac ? createRbac({ store, clock, log: silentLog }) : undefined
  const nodes = rbac && createNodeAuthorization({ store, clock, log: silentLog, next: rbac.authorizer })
  const requestAuthorizer = nodes?.authorizer ?? options.authorizer ?? { authorize: () => ({ allowed: true }) }
  const authorizer = options.recordsRuleUse ? recordRuleUse(requestAuthorizer) : requestAuthorizer
  const accountTokens = options.hasAccountTokens ? createTestAccountTokens({ store, clock }) : undefined
  const random = options.random ?? countingRandom()
  const journal = options.journal && createJournal({ clock, random, isStoreShared: options.journal === 'shared' })
  const operations = await openOperationBoard({ clock, onActivities: journal?.addActivities })
  const server = createApiServer({
    store,
    operations,
    ...(journal ? { journal } : {}),
    clock,
    random,
    log: silentLog,
    kinds: ALL_KINDS,
    gates: parseFeatureGates(options.gates),
    ...(options.expansionQuota ? { expansionQuota: options.expansionQuota } : {}),
    runtimeConfig: parseRuntimeConfig(options.runtimeConfig ?? '', ALL_KINDS),
    authenticator: options.authenticator ?? (accountTokens ? tokenAuthenticator(accountTokens) : ADMIN_AUTHENTICATOR),
    ...(accountTokens ? { accountTokens } : {}),
    authorizer,
    ...(rbac && nodes
      ? { admission: standardAdmission([rbac.escalationCheck, nodes.restriction, certificateAdmission(authorizer)]) }
      : { admission: standardAdmission(options.admissionPlugins) }),
    ...(options.audit ? { audit: options.audit } : {}),
    version: versionInfo(),
    ...(options.limits ? { limits: options.limits } : {}),
    ...(options.nodeConnections ? { nodeConnections: options.nodeConnections } : {}),
  })
  await createBuiltIns(server.objects)
  if (rbac) {
    const { signal } = new AbortController()
    await nodes?.start({ objects: server.objects.objects, signal })
    const client = inProcessClient(server.objects, SYSTEM_USER)
    await createBootstrapRoles(client, server.resources)
    await rbac.start({ client, signal })
  }

  await accountTokens?.start(new AbortController().signal)
  const toFixtureClient = (client: Client): Client =>
    isStock ? asStock(client, { clock, closesWatchesAfterMs: STOCK_WATCH_MS }) : client

  async function handle(method: string, url: string, body: string | Uint8Array | undefined, headers: Headers) {
    const queryStart = url.indexOf('?')
    const lowerCaseHeaders = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    )
    return server.handle({
      method,
      path: queryStart < 0 ? url : url.slice(0, queryStart),
      query: new URLSearchParams(queryStart < 0 ? '' : url.slice(queryStart + 1)),
      headers: lowerCaseHeaders,
      headerNames: () => Object.keys(lowerCaseHeaders),
      headerValues: (name) => (lowerCaseHeaders[name] === undefined ? [] : [lowerCaseHeaders[name]]),
      readBody: async () => (body === undefined ? new Uint8Array() : Buffer.from(body)),
    })
  }

  async function call(method: string, url: string, body?: string | Uint8Array, headers: Headers = {}) {
    const response = await handle(method, url, body, headers)
    const { status, headers: responseHeaders } = response
    const bytes = wholeBody(response)
    response.seats?.release()
    return {
      status,
      headers: responseHeaders,
      bytes,
      get text() {
        return Buffer.from(bytes).toString('utf8')
      },
      get json() {
        return JSON.parse(this.text)
      },
    }
  }

  const send = (method: string, url: string, body: unknown, headers: Headers = {}) =>
    call(method, url, JSON.stringify(body), { 'content-type': 'application/json', ...headers })

  return {
    server,
    authorizer,
    store,
    operations,
    ...(journal ? { journal } : {}),
    clock,
    accountTokens,
    isStock,
    client: () => toFixtureClient(inProcessClient(server.objects, SYSTEM_USER)),
    clientOf: (...components) => {
      const [component] = components
      const user =
        components.length === 1 && isInProcess(component!) ? userOf(component) : { name: components.join(), groups: [] }
      return toFixtureClient(inProcessClient(server.objects, user, componentAuthorizer(...components)))
    },
    call,
    get: (url, headers) => call('GET', url, undefined, headers),
    post: (url, body, headers) => send('POST', url, body, headers),
    put: (url, body, headers) => send('PUT', url, body, headers),
    patch: (url, body, type = 'strategic-merge') =>
      send('PATCH', url, body, { 'content-type': `application/${type}-patch+json` }),
    delete: (url, body) => (body === undefined ? call('DELETE', url) : send('DELETE', url, body)),
    async watch(url, headers = {}) {
      const response = await handle('GET', url, undefined, headers)
      if (!response.stream) throw new Error(`the watch failed: ${Buffer.from(response.body ?? []).toString('utf8')}`)
      const isProtobuf = String(response.headers['content-type']).startsWith(PROTOBUF_MEDIA)
      return followStream(response.stream, isProtobuf ? readFrames : readLines)
    },
    async waitUntil(condition, expected) {
      for (let tick = 0; tick < WAIT_TICKS_MAX; tick++) {
        if (await condition()) return
        await new Promise((resolve) => setImmediate(resolve))
        if (tick % 50 === 49) await clock.advance(1_000)
      }
      throw new Error(`timed out waiting for ${expected}`)
    },
    async advanceUntilSettled(promise) {
      let isSettled = false
      void promise.finally(() => {
        isSettled = true
      })
      while (!isSettled) {
        await new Promise((resolve) => setImmediate(resolve))
        await clock.advance(10)
      }
      return promise
    },
  }
}

const ADMIN_AUTHENTICATOR: Authenticator = {
  authenticate: () => ({ is: 'authenticated', user: ADMIN }),
  authenticateToken: () => undefined,
}

/** Authenticates a request by its bearer token. A request without a token is sent by the administrator. */
function tokenAuthenticator({ authenticator, apiAudiences }: AccountTokens): Authenticator {
  const caCert = issueKeylessCa('test-ca', manualClock())
  const { authenticate, authenticateToken } = createAuthenticator({
    caCert,
    tokenAuthenticators: [authenticator],
    apiAudiences,
    clock: manualClock(),
  })
  return {
    authenticate: (credentials) =>
      credentials.authorization ? authenticate(credentials) : ADMIN_AUTHENTICATOR.authenticate(credentials),
    authenticateToken,
  }
}

/** Ticks of the event loop after which a watch is expected to send no more events. */
const IDLE_TICKS_MAX = 1_000

interface FixtureEvent {
  readonly type: string
  readonly object: Json
}

function readLines(chunk: Uint8Array): FixtureEvent[] {
  const lines = Buffer.from(chunk).toString('utf8').split('\n')
  if (lines.pop() !== '') throw new Error('a chunk of a watch does not end with a newline')
  return lines.map((line) => JSON.parse(line))
}

/** Reads the frames of a protobuf watch. The object of an event is the envelope, whose `raw` is the encoded object. */
function readFrames(chunk: Uint8Array): FixtureEvent[] {
  const events: FixtureEvent[] = []
  const bytes = Buffer.from(chunk)
  for (let offset = 0; offset < bytes.length; ) {
    const end = offset + 4 + bytes.readUInt32BE(offset)
    const event = new ProtobufReader(bytes.subarray(offset + 4, end))
    let type = ''
    let object: Json
    while (event.moveToNextField()) {
      if (event.number === 1) type = event.readString()
      else {
        const raw = event.readMessage()
        while (raw.moveToNextField()) object = decodeEnvelope(raw.readBytes())
      }
    }
    events.push({ type, object })
    offset = end
  }
  return events
}

function followStream(
  stream: NonNullable<ApiResponse['stream']>,
  readEvents: (chunk: Uint8Array) => FixtureEvent[],
): FixtureWatch {
  const events: FixtureEvent[] = []
  const closeListeners: (() => void)[] = []
  let isEnded = false
  let isClosed = false
  const close = () => {
    if (isClosed) return
    isClosed = true
    for (const run of closeListeners) run()
  }
  stream({
    write(chunk) {
      if (isEnded) throw new Error('write to a watch after its end')
      events.push(...readEvents(chunk))
    },
    pendingBytes: 0,
    onDrain: (run) => run(),
    end() {
      isEnded = true
      setImmediate(close) // asynchronous, as with a real connection
    },
    cut() {
      isEnded = true
      close()
    },
    onClose: (run) => void closeListeners.push(run),
  })
  return {
    events,
    get isEnded() {
      return isEnded
    },
    async waitUntil(condition) {
      for (let tick = 0; !condition(events); tick++) {
        if (tick > IDLE_TICKS_MAX)
          throw new Error(`the expected event did not arrive; received: ${JSON.stringify(events)}`)
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
    close() {
      isEnded = true
      close()
    },
  }
}

/** Returns a pseudo-random sequence that is the same in every run. */
function countingRandom(): Random {
  let state = 1
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}
