// The client for any Kubernetes API server over HTTP.
//
// Requests other than watches are retried after 429 and 503 with Retry-After, and reads once after a broken connection. A
// write with a broken connection may have been applied: it fails with 503, and the caller must read the object again.

import type { IncomingMessage } from 'node:http'
import { isRecord } from '../../api/decode.ts'
import type { Kind, KubeObject } from '../../api/kind.ts'
import { formatLeaseFences, LEASE_FENCE_HEADER } from '../../api/kinds/lease/lease-fence.ts'
import { ApiError, isMissingRight, isNotServed, isUnauthorized, isUnavailable } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'

import {
  type Client,
  type CommitOptions,
  type CommitWrite,
  type DeleteRequest,
  failedWriteIndex,
  type ObjectRef,
  type Patch,
  type WatchEvent,
  type WatchRequest,
  type WriteOptions,
} from '../client.ts'
import { commitOneByOne } from '../commit-one-by-one.ts'
import type { Connection } from '../connection/connection.ts'
import { createServedVersions } from './served-versions.ts'
import { createTransport, type HttpResponse, type TransportRequest } from './transport.ts'
import { readWatch, WATCH_SILENCE_MS } from './watch.ts'
import { apiVersionOf, errorOfResponse, objectOf, parseResponse, type WireObject } from './wire.ts'

export interface HttpClientOptions {
  readonly connection: Connection
  readonly clock: Clock
  /** Timeout for the headers of a response, and again for its body unless it is a watch. Default: 60 s. */
  readonly timeoutMs?: number
  /** A watch that receives no data for this long ends, with an error if it has received bookmarks. Default: 150 s. */
  readonly watchSilenceMs?: number
  /** Name in audit logs and managed fields, such as `stowage-provisioner`. */
  readonly userAgent?: string
  readonly observer?: RequestObserver
}

export interface RequestObserver {
  /**
   * Called after every attempt. Without a response, `code` is 0 for a watch, and otherwise that of the error: 503, 504 after
   * the timeout, or 499 if the caller aborted the request.
   */
  observeRequest(request: { verb: string; resource: string; code: number; seconds: number }): void
}

export interface HttpClient extends Client {
  /** Returns the number of sockets, in use or idle. */
  countSockets(): number
  close(): void
}

const RETRIES_MAX = 10
const RETRY_AFTER_MS_MAX = 30_000
const COMMIT_API = '/apis/stowage.dev/v1'

export function httpClient(options: HttpClientOptions): HttpClient {
  const { connection, clock, observer, watchSilenceMs = WATCH_SILENCE_MS } = options
  const transport = createTransport(options)
  const versions = createServedVersions(transport)
  let hasCommits: boolean | undefined

  async function send(verb: string, kind: Kind | undefined, request: TransportRequest): Promise<WireObject> {
    const isRead = request.method === 'GET'
    for (let retries = 0; ; retries++) {
      const startedMs = clock.monotonicMs()
      const observe = (code: number) => {
        const seconds = (clock.monotonicMs() - startedMs) / 1_000
        observer?.observeRequest({ verb, resource: kind?.plural ?? '', code, seconds })
      }
      let response: HttpResponse
      try {
        response = await transport.call(request)
      } catch (error) {
        observe(error instanceof ApiError ? error.code : 0)
        // The server may have closed a keep-alive connection: retry once with a new one.
        if (isRead && retries === 0 && isUnavailable(error)) continue
        throw error
      }
      observe(response.status)
      if (response.status === 401) connection.invalidateCredentials?.()
      const waitMs = retryAfterMs(response)
      if (waitMs === undefined || retries >= RETRIES_MAX) return bodyOf(kind, response)
      await clock.sleep(waitMs, request.signal).catch(() => {
        throw errorOfResponse(response)
      })
    }
  }

  function bodyOf(kind: Kind | undefined, response: HttpResponse): WireObject {
    try {
      return parseResponse(response)
    } catch (error) {
      if (kind && isNotServed(error)) versions.invalidate(kind)
      throw error
    }
  }

  const resolvePath = async (kind: Kind, ref: Partial<ObjectRef>, subresource = ''): Promise<string> => {
    const version = await versions.versionOf(kind)
    const root = kind.group ? `/apis/${kind.group}/${version}` : `/api/${version}`
    const scope = kind.namespaced && ref.namespace ? `/namespaces/${encodeURIComponent(ref.namespace)}` : ''
    const name = ref.name ? `/${encodeURIComponent(ref.name)}` : ''
    return `${root}${scope}/${kind.plural}${name}${subresource ? `/${subresource}` : ''}`
  }
  const encodeObject = async (kind: Kind, object: Readonly<KubeObject>): Promise<string> =>
    JSON.stringify({ apiVersion: apiVersionOf(kind, await versions.versionOf(kind)), kind: kind.kind, ...object })

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
      const path = (await resolvePath(kind, { namespace: request.namespace })) + query
      const incoming = await transport.open({ method: 'GET', path, signal })
      code = incoming.statusCode ?? 0
      if (code !== 200) throw errorOfResponse(await readError(incoming))
      yield* readWatch<T>({ incoming, kind, server: connection.server, clock, silenceMs: watchSilenceMs, signal })
    } catch (error) {
      if (isUnauthorized(error)) connection.invalidateCredentials?.()
      if (isNotServed(error)) versions.invalidate(kind)
      if (!signal.aborted) throw error
    } finally {
      observer?.observeRequest({
        verb: 'WATCH',
        resource: kind.plural,
        code,
        seconds: (clock.monotonicMs() - startedMs) / 1_000,
      })
    }
  }

  async function create(
    kind: Kind,
    object: Readonly<KubeObject>,
    writeOptions: WriteOptions = {},
  ): Promise<WireObject> {
    const { namespace, name } = object.metadata
    const ref = writeOptions.subresource ? { namespace, name } : { namespace }
    const path = (await resolvePath(kind, ref, writeOptions.subresource)) + writeQuery(writeOptions)
    const body = writeOptions.subresource
      ? JSON.stringify({ ...SUBRESOURCE_BODIES[writeOptions.subresource], ...object })
      : await encodeObject(kind, object)
    const response = await send('POST', kind, { method: 'POST', path, body, ...sendOptions(writeOptions) })
    if (writeOptions.subresource === 'token') return response as WireObject
    return writeOptions.subresource ? object : objectOf(kind, response)
  }

  async function update(
    kind: Kind,
    object: Readonly<KubeObject>,
    writeOptions: WriteOptions = {},
  ): Promise<WireObject> {
    const { namespace, name } = object.metadata
    const path = (await resolvePath(kind, { namespace, name }, writeOptions.subresource)) + writeQuery(writeOptions)
    const body = await encodeObject(kind, object)
    return objectOf(kind, await send('PUT', kind, { method: 'PUT', path, body, ...sendOptions(writeOptions) }))
  }

  async function patch(
    kind: Kind,
    ref: ObjectRef,
    change: Patch,
    writeOptions: WriteOptions = {},
  ): Promise<WireObject> {
    const force = change.type === 'apply' && change.force ? 'true' : undefined
    const manager =
      change.type === 'apply'
        ? (writeOptions.fieldManager ?? options.userAgent ?? 'stowage')
        : writeOptions.fieldManager
    const query = writeQuery({ ...writeOptions, fieldManager: manager }, { force })
    const path = (await resolvePath(kind, ref, writeOptions.subresource)) + query
    const body =
      change.type === 'apply' ? await encodeObject(kind, change.body as KubeObject) : JSON.stringify(change.body)
    return objectOf(
      kind,
      await send('PATCH', kind, {
        method: 'PATCH',
        path,
        body,
        ...sendOptions(writeOptions, PATCH_MEDIA[change.type]),
      }),
    )
  }

  async function remove(kind: Kind, ref: ObjectRef, request: DeleteRequest = {}): Promise<WireObject> {
    const path = await resolvePath(kind, ref)
    const body = JSON.stringify(deleteOptionsOf(request))
    const response = await send('DELETE', kind, { method: 'DELETE', path, body, ...sendOptions(request) })
    // The response is a Status, the last state of a removed object, or an object that is marked for deletion.
    return stillExists(response) ? objectOf(kind, response) : undefined
  }

  async function commitsAtomically(): Promise<boolean> {
    if (hasCommits !== undefined) return hasCommits
    try {
      const { resources } = await send('GET', undefined, { method: 'GET', path: COMMIT_API })
      hasCommits = (resources ?? []).some(({ name }: { name: string }) => name === 'commits')
    } catch (error) {
      if (!isNotServed(error)) throw error
      hasCommits = false
    }
    return hasCommits === true
  }

  async function commit(writes: readonly CommitWrite[], writeOptions: CommitOptions = {}) {
    if (writes.length === 0) return []
    if (writes.length === 1 || !(await commitsAtomically())) return commitOneByOne(client, writes, writeOptions)
    const results = writeOptions.omitsObjects ? 'none' : 'distinct'
    const body = JSON.stringify({ results, writes: await Promise.all(writes.map(encodeWrite)) })
    const path = `${COMMIT_API}/commits${writeQuery({ fieldManager: writeOptions.fieldManager })}`
    try {
      const response = await send('POST', undefined, { method: 'POST', path, body, ...sendOptions(writeOptions) })
      return commitResults(writes, response.results)
    } catch (error) {
      // A denial without the index of a write is for the commit endpoint, so the next commit is sent as single writes.
      if (isMissingRight(error) && failedWriteIndex(error) === undefined) hasCommits = false
      if (isNotServed(error)) for (const { kind } of writes) versions.invalidate(kind)
      throw error
    }
  }

  async function encodeWrite(write: CommitWrite): Promise<object> {
    const apiVersion = apiVersionOf(write.kind, await versions.versionOf(write.kind))
    const ref = 'ref' in write ? write.ref : write.object.metadata
    const common = { verb: write.do, apiVersion, resource: write.kind.plural, namespace: ref.namespace, name: ref.name }
    switch (write.do) {
      case 'create':
      case 'update':
        return { ...common, subresource: write.subresource, body: write.object }
      case 'patch': {
        const force = write.patch.type === 'apply' && write.patch.force === true
        return { ...common, subresource: write.subresource, patchType: write.patch.type, force, body: write.patch.body }
      }
      case 'delete':
        return { ...common, body: deleteOptionsOf(write) }
    }
  }

  const client: HttpClient = {
    async get(kind, ref, { resourceVersion, signal } = {}) {
      const path = (await resolvePath(kind, ref)) + queryOf({ resourceVersion })
      return objectOf(kind, await send('GET', kind, { method: 'GET', path, signal }))
    },
    async list(kind, request = {}) {
      const query = queryOf({
        labelSelector: request.labelSelector,
        fieldSelector: request.fieldSelector,
        limit: request.limit,
        continue: request.continueToken,
        resourceVersion: request.resourceVersion,
      })
      const path = (await resolvePath(kind, { namespace: request.namespace })) + query
      const { items, metadata } = await send('LIST', kind, { method: 'GET', path, signal: request.signal })
      return {
        items: (items ?? []).map((item: WireObject) => objectOf(kind, item)),
        resourceVersion: metadata?.resourceVersion ?? '0',
        continueToken: metadata?.continue || undefined,
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
    countSockets: transport.countSockets,
    close: transport.close,
  }
  return client
}

/** Decodes the results of a commit. A number is the index of the last write of the same object, which has its result. */
function commitResults(writes: readonly CommitWrite[], results: readonly WireObject[]) {
  const objects = results.map((result, index) => (isRecord(result) ? objectOf(writes[index]!.kind, result) : undefined))
  return results.map((result, index) => (typeof result === 'number' ? objects[result] : objects[index]))
}

function stillExists({ kind, metadata, spec }: WireObject): boolean {
  if (kind === 'Status' || !metadata?.deletionTimestamp) return false
  return metadata.finalizers?.length > 0 || metadata.deletionGracePeriodSeconds > 0 || spec?.finalizers?.length > 0
}

const PATCH_MEDIA = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml', // the body is JSON, which is valid YAML
} as const

const SUBRESOURCE_BODIES: Readonly<Record<string, object>> = {
  binding: { apiVersion: 'v1', kind: 'Binding' },
  eviction: { apiVersion: 'policy/v1', kind: 'Eviction' },
  token: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' },
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

const writeQuery = (
  { fieldManager, dryRun }: WriteOptions,
  parameters: Record<string, string | undefined> = {},
): string => queryOf({ fieldManager, dryRun: dryRun ? 'All' : undefined, ...parameters })

/** Returns the signal and the headers of a write. */
function sendOptions({ signal, fences }: Pick<WriteOptions, 'signal' | 'fences'>, contentType?: string) {
  const headers = {
    ...(contentType ? { 'content-type': contentType } : {}),
    ...(fences && fences.length > 0 ? { [LEASE_FENCE_HEADER]: formatLeaseFences(fences) } : {}),
  }
  return { headers, signal }
}

/** Returns the delay before a retry, or undefined if the response is final. */
function retryAfterMs({ status, headers }: HttpResponse): number | undefined {
  if (status !== 429 && status !== 503) return undefined
  const seconds = Number(headers['retry-after'])
  if (!Number.isFinite(seconds) || seconds < 0) return undefined
  return Math.min(seconds * 1_000, RETRY_AFTER_MS_MAX)
}

const ERROR_BYTES_MAX = 1024 * 1024

async function readError(incoming: IncomingMessage): Promise<HttpResponse> {
  let text = ''
  for await (const chunk of incoming) {
    text += chunk
    if (text.length > ERROR_BYTES_MAX) break
  }
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, text }
}
