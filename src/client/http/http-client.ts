// The client of any Kubernetes API server, ours or another: the verbs as HTTP requests. http-transport.ts carries them,
// http-watch.ts reads watches, kubeconfig.ts and in-cluster.ts say where the server is.
//
// Retried: answers 429 and 503 that say when to come back, and reads whose connection broke. A write whose connection
// broke may have happened; it fails with 503 and the caller looks again.
import type { IncomingMessage } from 'node:http'
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { ApiError, isNotServed } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { deepFreeze } from '../../base/freeze.ts'
import type {
  Client,
  CommitWrite,
  DeleteRequest,
  ObjectRef,
  Patch,
  WatchEvent,
  WatchRequest,
  WriteOptions,
} from '../client.ts'
import { commitOneByOne } from '../commit-one-by-one.ts'
import type { Connection } from '../connection/connection.ts'
import { createTransport, type HttpResponse, type Transport, type TransportRequest } from './transport.ts'
import { readWatch, WATCH_SILENCE_MS } from './watch.ts'
import { apiVersionOf, errorOfStatus, plainObject } from './wire.ts'

export interface HttpClientOptions {
  readonly connection: Connection
  readonly clock: Clock
  /** For one try of anything but a watch. Default 60 s. */
  readonly timeoutMs?: number
  /** A watch that says nothing for this long is dead. Default 150 s. */
  readonly watchSilenceMs?: number
  /** Who we are in audit logs and managed fields: `stowage-provisioner`. */
  readonly userAgent?: string
  /** Told of every answer. */
  readonly observer?: RequestObserver
}

export interface RequestObserver {
  completed(request: { verb: string; resource: string; code: number; seconds: number }): void
}

export interface HttpClient extends Client {
  sockets(): number
  /** Closes the connections that are kept open. */
  close(): void
}

const RETRIES_MAX = 10
const RETRY_AFTER_MS_MAX = 30_000
const COMMITS = '/apis/stowage.dev/v1'

export function httpClient(options: HttpClientOptions): HttpClient {
  const { connection, clock, observer, watchSilenceMs = WATCH_SILENCE_MS } = options
  const transport = createTransport(options)
  const versions = createVersions(transport)
  let commits: boolean | undefined

  async function send(verb: string, kind: Kind | undefined, request: TransportRequest): Promise<any> {
    const isRead = request.method === 'GET'
    for (let tries = 0; ; tries++) {
      const startedMs = clock.monotonicMs()
      const observe = (code: number) => {
        const seconds = (clock.monotonicMs() - startedMs) / 1_000
        observer?.completed({ verb, resource: kind?.plural ?? '', code, seconds })
      }
      let answer: HttpResponse
      try {
        answer = await transport.call(request)
      } catch (error) {
        observe(error instanceof ApiError ? error.code : 0)
        // A connection kept from earlier may have been closed by the other side; a new one tells.
        if (isRead && tries === 0 && error instanceof ApiError && error.code === 503) continue
        throw error
      }
      observe(answer.status)
      if (answer.status === 401) connection.forgetCredentials?.()
      const waitMs = retryAfterMs(answer)
      if (waitMs === undefined || tries >= RETRIES_MAX) return understoodOf(kind, answer)
      await clock.sleep(waitMs, request.signal).catch(() => {
        throw errorOf(answer)
      })
    }
  }

  function understoodOf(kind: Kind | undefined, answer: HttpResponse): any {
    try {
      return understood(answer)
    } catch (error) {
      if (kind && isNotServed(error)) versions.forget(kind)
      throw error
    }
  }

  const pathOf = async (kind: Kind, ref: Partial<ObjectRef>, subresource = ''): Promise<string> => {
    const version = await versions.of(kind)
    const root = kind.group ? `/apis/${kind.group}/${version}` : `/api/${version}`
    const home = kind.namespaced && ref.namespace ? `/namespaces/${encodeURIComponent(ref.namespace)}` : ''
    const name = ref.name ? `/${encodeURIComponent(ref.name)}` : ''
    return `${root}${home}/${kind.plural}${name}${subresource ? `/${subresource}` : ''}`
  }
  const wireObject = async (kind: Kind, object: Readonly<KubeObject>): Promise<string> =>
    JSON.stringify({ apiVersion: apiVersionOf(kind, await versions.of(kind)), kind: kind.kind, ...object })
  const received = <T extends KubeObject>(wire: any): Readonly<Stored<T>> => deepFreeze(plainObject<T>(wire))

  async function* watch<T extends KubeObject>(kind: Kind<T>, request: WatchRequest): AsyncGenerator<WatchEvent<T>> {
    const { signal } = request
    if (signal.aborted) return
    const query = queryOf({
      watch: 'true',
      allowWatchBookmarks: 'true',
      labelSelector: request.labelSelector,
      fieldSelector: request.fieldSelector,
      resourceVersion: request.resourceVersion,
      sendInitialEvents: request.sendInitialEvents,
      resourceVersionMatch: request.sendInitialEvents === undefined ? undefined : 'NotOlderThan',
      timeoutSeconds: request.timeoutSeconds,
    })
    const startedMs = clock.monotonicMs()
    let code = 0
    try {
      const path = (await pathOf(kind, { namespace: request.namespace })) + query
      const incoming = await transport.open({ method: 'GET', path, signal })
      code = incoming.statusCode ?? 0
      if (code !== 200) throw errorOf(await wholeAnswer(incoming))
      yield* readWatch<T>({ incoming, kind, server: connection.server, clock, silenceMs: watchSilenceMs, signal })
    } catch (error) {
      if (error instanceof ApiError && error.code === 401) connection.forgetCredentials?.()
      if (isNotServed(error)) versions.forget(kind)
      if (!signal.aborted) throw error
    } finally {
      observer?.completed({
        verb: 'WATCH',
        resource: kind.plural,
        code,
        seconds: (clock.monotonicMs() - startedMs) / 1_000,
      })
    }
  }

  async function create(kind: Kind, object: Readonly<KubeObject>, write: WriteOptions = {}): Promise<any> {
    const { namespace, name } = object.metadata
    const ref = write.subresource ? { namespace, name } : { namespace }
    const path = (await pathOf(kind, ref, write.subresource)) + writeQuery(write)
    const body = write.subresource
      ? JSON.stringify({ ...SUBRESOURCE_BODIES[write.subresource], ...object })
      : await wireObject(kind, object)
    const answer = await send('POST', kind, { method: 'POST', path, body, signal: write.signal })
    return write.subresource ? object : received(answer)
  }

  async function update(kind: Kind, object: Readonly<KubeObject>, write: WriteOptions = {}): Promise<any> {
    const { namespace, name } = object.metadata
    const path = (await pathOf(kind, { namespace, name }, write.subresource)) + writeQuery(write)
    const body = await wireObject(kind, object)
    return received(await send('PUT', kind, { method: 'PUT', path, body, signal: write.signal }))
  }

  async function patch(kind: Kind, ref: ObjectRef, change: Patch, write: WriteOptions = {}): Promise<any> {
    const force = change.type === 'apply' && change.force ? 'true' : undefined
    const manager =
      change.type === 'apply' ? (write.fieldManager ?? options.userAgent ?? 'stowage') : write.fieldManager
    const query = writeQuery({ ...write, fieldManager: manager }, { force })
    const path = (await pathOf(kind, ref, write.subresource)) + query
    const body =
      change.type === 'apply' ? await wireObject(kind, change.body as KubeObject) : JSON.stringify(change.body)
    const headers = { 'content-type': PATCH_MEDIA[change.type] }
    return received(await send('PATCH', kind, { method: 'PATCH', path, body, headers, signal: write.signal }))
  }

  async function remove(kind: Kind, ref: ObjectRef, request: DeleteRequest = {}): Promise<any> {
    const path = await pathOf(kind, ref)
    const body = JSON.stringify(deleteOptionsOf(request))
    const answer = await send('DELETE', kind, { method: 'DELETE', path, body, signal: request.signal })
    // Some kinds answer a Status, some the object: as it was, if it is gone, or as it stays for now.
    return staysForNow(answer) ? received(answer) : undefined
  }

  async function commitsAtomically(): Promise<boolean> {
    if (commits !== undefined) return commits
    try {
      const { resources = [] } = await send('GET', undefined, { method: 'GET', path: COMMITS })
      commits = resources.some(({ name }: { name: string }) => name === 'commits')
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 404)) throw error
      commits = false
    }
    return commits === true
  }

  async function commit(writes: readonly CommitWrite[], write: { fieldManager?: string; signal?: AbortSignal } = {}) {
    if (writes.length === 0) return []
    if (writes.length === 1 || !(await commitsAtomically())) return commitOneByOne(client, writes, write)
    const body = JSON.stringify({ writes: await Promise.all(writes.map(wireWrite)) })
    const path = `${COMMITS}/commits${writeQuery({ fieldManager: write.fieldManager })}`
    const { results } = await send('POST', undefined, { method: 'POST', path, body, signal: write.signal }).catch(
      (error) => {
        if (isNotServed(error)) for (const { kind } of writes) versions.forget(kind)
        throw error
      },
    )
    return (results as any[]).map((object) => (object ? received<any>(object) : undefined))
  }

  async function wireWrite(one: CommitWrite): Promise<object> {
    const apiVersion = apiVersionOf(one.kind, await versions.of(one.kind))
    const ref = 'ref' in one ? one.ref : one.object.metadata
    const common = { verb: one.do, apiVersion, resource: one.kind.plural, namespace: ref.namespace, name: ref.name }
    switch (one.do) {
      case 'create':
      case 'update':
        return { ...common, subresource: one.subresource, body: one.object }
      case 'patch': {
        const force = one.patch.type === 'apply' && one.patch.force === true
        return { ...common, subresource: one.subresource, patchType: one.patch.type, force, body: one.patch.body }
      }
      case 'delete':
        return { ...common, body: deleteOptionsOf(one) }
    }
  }

  const client: HttpClient = {
    async get(kind, ref, { resourceVersion, signal } = {}) {
      const path = (await pathOf(kind, ref)) + queryOf({ resourceVersion })
      return received(await send('GET', kind, { method: 'GET', path, signal }))
    },
    async list(kind, request = {}) {
      const query = queryOf({
        labelSelector: request.labelSelector,
        fieldSelector: request.fieldSelector,
        limit: request.limit,
        continue: request.continueToken,
        resourceVersion: request.resourceVersion,
      })
      const path = (await pathOf(kind, { namespace: request.namespace })) + query
      const { items, metadata } = await send('LIST', kind, { method: 'GET', path, signal: request.signal })
      return {
        items: (items ?? []).map(received),
        resourceVersion: metadata.resourceVersion,
        ...(metadata.continue ? { continueToken: metadata.continue } : {}),
      }
    },
    create,
    update,
    patch,
    delete: remove,
    watch: watch as Client['watch'],
    commit,
    commitsAtomically,
    serves: async (kind) => (await versions.find(kind)) !== undefined,
    sockets: transport.sockets,
    close: transport.close,
  }
  return client
}

function staysForNow({ kind, metadata, spec }: any): boolean {
  if (kind === 'Status' || !metadata?.deletionTimestamp) return false
  return metadata.finalizers?.length > 0 || metadata.deletionGracePeriodSeconds > 0 || spec?.finalizers?.length > 0
}

const PATCH_MEDIA = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml', // JSON is YAML
} as const

const SUBRESOURCE_BODIES: Readonly<Record<string, object>> = {
  binding: { apiVersion: 'v1', kind: 'Binding' },
  eviction: { apiVersion: 'policy/v1', kind: 'Eviction' },
}

function deleteOptionsOf({ propagation, gracePeriodSeconds, uid, resourceVersion, dryRun }: DeleteRequest): object {
  return {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    ...(propagation ? { propagationPolicy: propagation } : {}),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(uid || resourceVersion ? { preconditions: { uid, resourceVersion } } : {}),
    ...(dryRun ? { dryRun: ['All'] } : {}),
  }
}

function queryOf(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined && value !== '') query.set(name, String(value))
  const text = query.toString()
  return text ? `?${text}` : ''
}

const writeQuery = ({ fieldManager, dryRun }: WriteOptions, more: Record<string, string | undefined> = {}): string =>
  queryOf({ fieldManager, dryRun: dryRun ? 'All' : undefined, ...more })

function understood(answer: HttpResponse): any {
  if (answer.status < 200 || answer.status > 299) throw errorOf(answer)
  try {
    return JSON.parse(answer.text)
  } catch {
    throw new ApiError(502, 'BadGateway', `the answer is no JSON: ${answer.text.slice(0, 100)}`)
  }
}

function errorOf({ status, text }: HttpResponse): ApiError {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // a proxy's page, or nothing
  }
  return errorOfStatus(value, status, text)
}

/** Undefined when this answer is final. */
function retryAfterMs({ status, headers }: HttpResponse): number | undefined {
  if (status !== 429 && status !== 503) return undefined
  const seconds = Number(headers['retry-after'])
  if (!Number.isFinite(seconds) || seconds < 0) return undefined
  return Math.min(seconds * 1_000, RETRY_AFTER_MS_MAX)
}

const ERROR_BYTES_MAX = 1024 * 1024

async function wholeAnswer(incoming: IncomingMessage): Promise<HttpResponse> {
  let text = ''
  for await (const chunk of incoming) {
    text += chunk
    if (text.length > ERROR_BYTES_MAX) break
  }
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, text }
}

/**
 * Which version of a kind the server has: the first of ours that it serves. What is missing may be installed later, and
 * what was there may have been switched off: then it is asked for again.
 */
function createVersions(transport: Transport) {
  const found = new Map<string, string>()
  const idOf = ({ group, plural }: Kind) => `${group}/${plural}`
  const find = async (kind: Kind): Promise<string | undefined> => {
    const known = found.get(idOf(kind))
    if (known) return known
    for (const version of kind.versions) {
      if (!(await ask(transport, kind, version))) continue
      found.set(idOf(kind), version)
      return version
    }
    return undefined
  }
  return {
    find,
    forget: (kind: Kind) => void found.delete(idOf(kind)),
    /** Kinds with one version need no question; the answer to the request itself will tell. */
    of: async (kind: Kind): Promise<string> =>
      kind.versions.length === 1 ? kind.versions[0]! : ((await find(kind)) ?? kind.versions[0]!),
  }
}

async function ask(transport: Transport, { group, plural }: Kind, version: string): Promise<boolean> {
  const path = group ? `/apis/${group}/${version}` : `/api/${version}`
  const answer = await transport.call({ method: 'GET', path })
  if (answer.status === 404) return false
  const { resources = [] } = understood(answer)
  return resources.some(({ name }: { name: string }) => name === plural)
}
