// Test support: makes the client of a Stowage server behave like the HTTP client of a stock API server. The options
// select most of the differences:
//
//   form      empty lists and maps are null, [] or {}, or omitted; null also stands for absent scalars (stockJson)
//   commits   there is no commit endpoint: a commit is a sequence of single writes
//   watches   there is no WatchList, and the server may close a watch
//   kinds     some are not served
//   access    requests fail with 403 if no rule of a role grants them
//   load      some requests fail with 429
//   amounts   iops and throughput are rejected in fields in which a stock server accepts storage only, unless it has commits
//
// The objects pass through decodeResponse, as those of the HTTP client do.
import { decodeResponse } from '../api/decode-response.ts'
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import type { ObjectType, Type } from '../api/schema.ts'
import { ApiError, forbidden, noSuchPath, tooManyRequests } from '../api/status-error.ts'
import type { Clock, Random } from '../base/clock.ts'
import { type Client, type CommitWrite, commitWriteFailed, type WatchEvent, type WatchRequest } from './client.ts'
import { commitOneByOne } from './commit-one-by-one.ts'

export interface StockRequest {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'
  readonly kind: Kind
  readonly subresource?: string
  readonly namespace?: string
  readonly name?: string
  readonly fieldSelector?: string
}

export interface StockOptions {
  /** Returns whether the server serves the kind. Default: it serves all. */
  readonly serves?: (kind: Kind) => boolean
  /** Returns whether the request is allowed. Default: all are. Called for every request, so a test can grant permissions later. */
  readonly allows?: (request: StockRequest) => boolean
  /** Whether the server has the commit endpoint, as Stowage does. It checks the permission for each write first. Default: false. */
  readonly hasCommits?: boolean
  /** Returns whether the request fails with 429. Default: none does. Not called for watches. */
  readonly rejects?: (request: StockRequest) => boolean
  /** The server closes each watch after this time. Default: only if the request has a timeout. */
  readonly closesWatchesAfterMs?: number | (() => number)
  /** Required by closesWatchesAfterMs. */
  readonly clock?: Clock
  /** Selects the form of each response. Default: one form after another. */
  readonly random?: Random
  /** Called with every request before it is checked. */
  readonly onRequest?: (request: StockRequest) => void
}

export function asStock(client: Client, options: StockOptions = {}): Client {
  const { random } = options
  let responseCount = 0
  const nextForm = random ? () => Math.floor(random() * FORM_COUNT) : () => responseCount++

  const asResponse = <T extends KubeObject>(kind: Kind<T>, object: Readonly<Stored<T>>): Readonly<Stored<T>> =>
    decodeResponse(kind.type, stockJson(kind.type, object, nextForm())) as Stored<T>

  function check(request: StockRequest): void {
    options.onRequest?.(request)
    const { verb, kind, subresource } = request
    if (options.serves?.(kind) === false) throw noSuchPath()
    if (options.allows?.(request) === false) {
      const resource = subresource ? `${kind.plural}/${subresource}` : kind.plural
      throw forbidden(
        kind,
        request.name ?? '',
        `user cannot ${verb} resource "${resource}" in API group "${kind.group}"`,
      )
    }
    if (verb !== 'watch' && options.rejects?.(request)) throw tooManyRequests('too many requests')
  }

  async function* watch<T extends KubeObject>(kind: Kind<T>, request: WatchRequest): AsyncGenerator<WatchEvent<T>> {
    const { sendInitialEvents, signal, namespace, fieldSelector } = request
    if (signal.aborted) return
    check({ verb: 'watch', kind, namespace, fieldSelector })
    if (sendInitialEvents) {
      throw new ApiError(
        422,
        'Invalid',
        'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
      )
    }
    const watchAbort = new AbortController()
    const close = () => watchAbort.abort()
    signal.addEventListener('abort', close, { once: true })
    const { closesWatchesAfterMs: afterMs, clock } = options
    const lifetimeMs = typeof afterMs === 'function' ? afterMs() : afterMs
    const cancel = lifetimeMs && clock ? clock.after(lifetimeMs, close) : () => {}
    try {
      for await (const event of client.watch(kind, { ...request, signal: watchAbort.signal })) {
        yield event.type === 'bookmark' ? event : { ...event, object: asResponse(kind, event.object) }
      }
    } finally {
      cancel()
      signal.removeEventListener('abort', close)
    }
  }

  function checkWrite(write: CommitWrite): void {
    const { do: verb, kind } = write
    const { namespace, name } = 'ref' in write ? write.ref : write.object.metadata
    check({ verb, kind, subresource: 'subresource' in write ? write.subresource : undefined, namespace, name })
  }

  async function commit(
    writes: readonly CommitWrite[],
    commitOptions: Parameters<Client['commit']>[1],
  ): Promise<(Readonly<Stored> | undefined)[]> {
    if (!options.hasCommits) return commitOneByOne(stockClient, writes, commitOptions)
    for (const [index, write] of writes.entries()) {
      try {
        checkWrite(write)
      } catch (error) {
        throw commitWriteFailed(error, index)
      }
    }
    const objects = await client.commit(writes, commitOptions)
    return objects.map((object, index) => object && asResponse(writes[index]!.kind, object))
  }

  function rejectAmounts(kind: Kind, object: object, fields = STORAGE_ONLY): void {
    if (!options.hasCommits) checkAmounts(kind, object, fields)
  }

  const stockClient: Client = {
    async get(kind, ref, request) {
      check({ verb: 'get', kind, ...ref })
      return asResponse(kind, await client.get(kind, ref, request))
    },
    async list(kind, request = {}) {
      check({ verb: 'list', kind, namespace: request.namespace, fieldSelector: request.fieldSelector })
      const list = await client.list(kind, request)
      return { ...list, items: list.items.map((item) => asResponse(kind, item)) }
    },
    async create(kind, object, write = {}) {
      check({ verb: 'create', kind, subresource: write.subresource, namespace: object.metadata.namespace })
      rejectAmounts(kind, object)
      const createdObject = await client.create(kind, object, write)
      return write.subresource ? createdObject : asResponse(kind, createdObject)
    },
    async update(kind, object, write = {}) {
      const { namespace, name } = object.metadata
      check({ verb: 'update', kind, subresource: write.subresource, namespace, name })
      rejectAmounts(kind, object)
      return asResponse(kind, await client.update(kind, object, write))
    },
    async patch(kind, ref, change, write = {}) {
      check({ verb: 'patch', kind, subresource: write.subresource, ...ref })
      const objects = change.type === 'json' ? change.body.map(objectOfOperation) : [change.body]
      for (const object of objects) rejectAmounts(kind, object, STORAGE_ONLY_IN_PATCHES)
      return asResponse(kind, await client.patch(kind, ref, change, write))
    },
    async delete(kind, ref, request) {
      check({ verb: 'delete', kind, ...ref })
      const markedObject = await client.delete(kind, ref, request)
      return markedObject && asResponse(kind, markedObject)
    },
    watch: watch as Client['watch'],
    commit,
    commitsAtomically: async () => options.hasCommits === true,
    serves: async (kind) => options.serves?.(kind) !== false && client.serves(kind),
  }
  return stockClient
}

/** The number of different forms: a multiple of the length of each list of empty forms. */
const FORM_COUNT = 6

/** The fields in which a stock server accepts `storage` and no other resource of Kubernetes. */
const STORAGE_ONLY: Readonly<Record<string, readonly (readonly string[])[]>> = {
  PersistentVolume: [['spec', 'capacity']],
  PersistentVolumeClaim: [
    ['status', 'allocatedResources'],
    ['status', 'allocatedResourceStatuses'],
  ],
}
/** A claim's requests can have any resource when it is created; later only `storage` can change. */
const STORAGE_ONLY_IN_PATCHES: typeof STORAGE_ONLY = {
  ...STORAGE_ONLY,
  PersistentVolumeClaim: [...STORAGE_ONLY.PersistentVolumeClaim!, ['spec', 'resources', 'requests']],
}

function checkAmounts({ kind }: Kind, object: object, fields: typeof STORAGE_ONLY): void {
  for (const path of fields[kind] ?? []) {
    let field: unknown = object
    for (const key of path) field = (field as Record<string, unknown> | null | undefined)?.[key]
    const amounts = Object.entries((field ?? {}) as Record<string, unknown>)
    const rejectedAmount = amounts.find(([name, value]) => name !== 'storage' && !name.includes('/') && value !== null)
    if (!rejectedAmount) continue
    const message = `${path.join('.')}: Unsupported value: "${rejectedAmount[0]}": supported values: "storage"`
    throw new ApiError(422, 'Invalid', `${kind} is invalid: ${message}`)
  }
}

/** Returns the object that an operation of a JSON patch writes, with nothing else: `/spec/capacity/iops` → spec.capacity. */
function objectOfOperation(operation: object): object {
  const { op, path, value } = operation as { readonly op: string; readonly path: string; readonly value?: unknown }
  if (op === 'remove' || op === 'test') return {}
  const keys = path.split('/').slice(1)
  return keys.reduceRight<unknown>((child, key) => ({ [key]: child }), value) as object
}

/** Returns a copy of an object as the JSON of a stock server. `form` selects how it writes each empty value. */
export function stockJson(type: ObjectType, object: object, form: number): Record<string, unknown> {
  const json: Record<string, unknown> = { ...(object as Record<string, unknown>) }
  let position = form
  for (const [name, field] of Object.entries(type.fields)) {
    const value = json[name]
    if (value !== undefined && !isEmptyCollection(field.type, value)) {
      json[name] = stockValue(field.type, value, position++)
      continue
    }
    if (field.keepsEmpty && !field.required && value !== undefined) {
      json[name] = copyOf(value) // a pointer to an empty value is not the same as no value
      continue
    }
    const emptyForms = field.keepsEmpty && !field.required ? [null, undefined] : emptyFormsOf(field.type)
    const emptyForm = emptyForms[position++ % emptyForms.length]
    if (emptyForm === undefined) delete json[name]
    else json[name] = copyOf(emptyForm)
  }
  return json
}

function emptyFormsOf(type: Type): readonly unknown[] {
  if (type.is === 'list') return [null, [], undefined]
  if (type.is === 'map') return [null, undefined, {}]
  return [undefined, null]
}

function stockValue(type: Type, value: unknown, form: number): unknown {
  if (type.is === 'object') return stockJson(type, value as object, form)
  if (type.is === 'list') return (value as unknown[]).map((item, index) => stockValue(type.item, item, form + index))
  if (type.is === 'map') {
    const entries = Object.entries(value as Record<string, unknown>)
    return Object.fromEntries(entries.map(([key, item], index) => [key, stockValue(type.value, item, form + index)]))
  }
  return copyOf(value)
}

const copyOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null ? structuredClone(value) : value

const isEmptyCollection = (type: Type, value: unknown): boolean =>
  (type.is === 'list' || type.is === 'map') && Object.keys(value as object).length === 0
