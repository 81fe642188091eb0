// The stored form of objects: JSON with metadata first and without apiVersion, kind and resourceVersion, so that a response
// in any group version is a short prefix followed by the stored bytes.
//   stored    {"metadata":{"name":"a",…},"spec":…}
//   response  {"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a",…},"spec":…}
import { jsonEquals } from '../../api/json-value.ts'
import type { KubeObject } from '../../api/kind.ts'
import { deepFreeze } from '../../base/freeze.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { Entry } from '../../store/index.ts'
import type { Resource } from '../resources.ts'

const HEAD = '{"metadata":{'
const HEAD_BYTES = HEAD.length

/** A stored object as readers get it: frozen, with its resourceVersion, and shared by all readers. */
export type Shared<T extends KubeObject = KubeObject> = Readonly<T>

/**
 * The objects encoded last, by their bytes: most are decoded at once, for the response and for watchers. About as many as
 * a group commit writes: objects kept longer would be promoted by the garbage collector.
 */
const encoded = new LruCache<Uint8Array, Shared>(500)
/** After this many encodes without a decode, objects are not kept until the next decode, to spare the garbage collector. */
const UNREAD_MAX = 2_000
let unread = 0

/** Takes ownership of the object, which must not change afterwards: decoding the same bytes soon returns it. */
export function encodeStored(object: KubeObject): Buffer {
  const stored = storedForm(object)
  const value = Buffer.from(JSON.stringify(stored), 'utf8')
  if (unread < UNREAD_MAX) {
    encoded.set(value, stored)
    unread++
  }
  return value
}

/** With metadata first and without a resourceVersion. */
function storedForm(object: KubeObject): KubeObject {
  if (firstKeyOf(object) === 'metadata' && object.metadata.resourceVersion === undefined) return object
  const { metadata, ...rest } = object
  const { resourceVersion: _, ...meta } = metadata
  return { metadata: meta, ...rest }
}

function firstKeyOf(object: object): string | undefined {
  for (const key in object) return key
  return undefined
}

/**
 * Makes an encoded object equal to its decoded form: frozen and without undefined fields. Frozen parts are done already.
 * Runs on decode, because a busy server decodes few of the objects it encodes.
 */
function freezeAsDecoded<T extends object>(value: T): T {
  if (Object.isFrozen(value)) return value
  const fields = value as Record<string, unknown>
  for (const key of Object.keys(fields)) {
    const inner = fields[key]
    if (inner === undefined) delete fields[key]
    else if (typeof inner === 'object' && inner !== null) freezeAsDecoded(inner)
  }
  return Object.freeze(value)
}

/**
 * Decodes entries, with a cache by revision and key. A hit also compares the bytes: a transaction sees the uncommitted
 * entries of its group commit, and if that fails, other entries get the same revisions.
 * The transactions of a group commit decode the same few entries repeatedly; `recent` finds them by identity.
 */
export function createStoredObjects(cachedMax = 8_000) {
  const cache = new LruCache<string, { readonly value: Uint8Array; readonly object: Shared }>(cachedMax)
  const recent: { readonly entry: Entry; readonly object: Shared }[] = []
  let oldest = 0
  const decodeCached = (entry: Entry): Shared => {
    const id = `${entry.modRevision} ${entry.key}`
    const known = cache.get(id)
    if (known && sameBytes(known.value, entry.value)) return known.object
    const object = decodeStored(entry)
    cache.set(id, { value: entry.value, object })
    return object
  }
  return {
    decode(entry: Entry): Shared {
      for (const known of recent) if (known.entry === entry) return known.object
      const object = decodeCached(entry)
      recent[oldest] = { entry, object }
      oldest = (oldest + 1) % RECENT_MAX
      return object
    },
  }
}

const RECENT_MAX = 4

export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a === b || Buffer.compare(a, b) === 0

/** Without the cache, for bytes that the store does not have at this revision. */
export function decodeStored({ value, modRevision }: Pick<Entry, 'value' | 'modRevision'>): Shared {
  unread = 0
  const known = encoded.get(value)
  if (known) return modRevision > 0 ? withVersion(freezeAsDecoded(known), modRevision) : freezeAsDecoded(known)
  const object = JSON.parse(bufferOf(value).toString('utf8'))
  if (modRevision > 0) object.metadata.resourceVersion = String(modRevision)
  return deepFreeze(object)
}

const withVersion = (object: Shared, revision: number): Shared => {
  const metadata = Object.freeze({ ...object.metadata, resourceVersion: String(revision) })
  return Object.freeze({ ...object, metadata })
}

export type StoredObjects = ReturnType<typeof createStoredObjects>

/** One object as it appears in a response or watch event of a group version. */
export function objectBytes(resource: Resource, value: Uint8Array, revision: number): Buffer {
  const head = `{"kind":"${resource.kind.kind}","apiVersion":"${resource.apiVersion}","metadata":{`
  const prefix = prefixOf(head, value, revision)
  const bytes = Buffer.allocUnsafe(prefix.length + value.length - HEAD_BYTES)
  bytes.write(prefix, 0, 'latin1')
  bytes.set(value.subarray(HEAD_BYTES), prefix.length)
  return bytes
}

/** A list in one buffer; its items have no kind and apiVersion. */
export function listBytes(head: object, entries: readonly Entry[]): Buffer {
  const start = `${JSON.stringify(head).slice(0, -1)},"items":[`
  const end = ']}'
  let bytesMax = Buffer.byteLength(start) + end.length
  for (const { value } of entries) bytesMax += value.length + VERSION_BYTES_MAX
  const bytes = Buffer.allocUnsafe(bytesMax)

  let at = bytes.write(start, 0)
  for (const [index, { value, modRevision }] of entries.entries()) {
    at += bytes.write(
      index > 0 ? `,${prefixOf(HEAD, value, modRevision)}` : prefixOf(HEAD, value, modRevision),
      at,
      'latin1',
    )
    bytes.set(value.subarray(HEAD_BYTES), at)
    at += value.length - HEAD_BYTES
  }
  at += bytes.write(end, at)
  return bytes.subarray(0, at)
}

/** A list adds a comma and the resourceVersion to each item. */
const VERSION_BYTES_MAX = `,"resourceVersion":"${Number.MAX_SAFE_INTEGER}",`.length

function prefixOf(head: string, value: Uint8Array, revision: number): string {
  if (revision === 0) return head
  // 0x7d is "}": empty metadata, which would make the comma invalid JSON. The store has no such object.
  const comma = value[HEAD_BYTES] === 0x7d ? '' : ','
  return `${head}"resourceVersion":"${revision}"${comma}`
}

const bufferOf = (value: Uint8Array): Buffer =>
  Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength)

/** Whether two stored forms are equal as JSON. A different order of keys does not change the length. */
export function sameContent(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  if (Buffer.compare(a, b) === 0) return true
  return jsonEquals(JSON.parse(bufferOf(a).toString('utf8')), JSON.parse(bufferOf(b).toString('utf8')))
}
