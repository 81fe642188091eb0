// The stored form of objects: JSON with metadata first and without apiVersion, kind or resourceVersion. A JSON response of
// the stored kind, in any of its versions, has these bytes with a longer head.
//   stored    {"metadata":{"name":"a",…},"spec":…}
//   response  {"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a",…},"spec":…}
import { FIELD_SET_LEAF } from '../../api/apply/index.ts'
import { jsonEquals } from '../../api/json-value.ts'
import type { KubeObject } from '../../api/kind.ts'
import type { Clock } from '../../base/clock.ts'
import { ExpiringCache } from '../../base/expiring-cache.ts'
import { deepFreeze } from '../../base/freeze.ts'
import { LruCache } from '../../base/lru-cache.ts'
import { bytesOfText } from '../../base/unpooled-bytes.ts'
import type { Entry } from '../../store/index.ts'
import type { Resource } from '../resources.ts'

const HEAD = '{"metadata":{'
const HEAD_BYTES = HEAD.length

/** A decoded object: frozen, with its resourceVersion, and shared by all readers. */
export type Shared<T extends KubeObject = KubeObject> = Readonly<T>

/**
 * The last encoded objects by their bytes, because they are often decoded soon, for the response and for watchers.
 */
const encodedObjects = new LruCache<Uint8Array, Shared>(500)
/** After this many encodes without a decode, caching stops until the next decode, to reduce garbage collection. */
const ENCODES_WITHOUT_DECODE_MAX = 2_000
let encodesSinceDecode = 0

/** Encodes an object. The caller must not change the object afterwards, because it may be returned by a decode. */
export function encodeStored(object: KubeObject): Buffer {
  const storedObject = storedForm(object)
  const value = bytesOfText(JSON.stringify(storedObject))
  if (encodesSinceDecode < ENCODES_WITHOUT_DECODE_MAX) {
    encodedObjects.set(value, storedObject)
    encodesSinceDecode++
  }
  return value
}

/** Returns the object with metadata first and without resourceVersion. */
function storedForm(object: KubeObject): KubeObject {
  if (firstKeyOf(object) === 'metadata' && object.metadata.resourceVersion === undefined) return object
  const { metadata, ...fields } = object
  const { resourceVersion: _, ...meta } = metadata
  return { metadata: meta, ...fields }
}

function firstKeyOf(object: object): string | undefined {
  for (const key in object) return key
  return undefined
}

/**
 * Makes an encoded object equal to its decoded form: frozen and without undefined fields. Skips frozen parts. Runs on
 * decode, because not every encoded object is decoded.
 */
function freezeAsDecoded<T extends object>(value: T): T {
  if (Object.isFrozen(value)) return value
  const fields = value as Record<string, unknown>
  // Unlike Object.keys, the loop allocates nothing. Plain data inherits no enumerable fields.
  for (const key in fields) {
    const field = fields[key]
    if (field === undefined) delete fields[key]
    // Object.isFrozen is not cheap. Most objects in managedFields are this one, which is frozen.
    else if (typeof field === 'object' && field !== null && field !== FIELD_SET_LEAF) freezeAsDecoded(field)
  }
  return Object.freeze(value)
}

/**
 * Decodes entries, with a cache by revision and key. A hit also compares the bytes: transactions read uncommitted entries
 * of their group commit, and if the commit fails, other entries receive the same revisions. `recentObjects` finds by the identity of
 * their bytes the entries that the transactions of a group commit, its response and the watchers of its events decode, without a text
 * as key.
 */
export function createStoredObjects(clock: Pick<Clock, 'after'>, entriesMax = CACHED_ENTRIES_MAX) {
  const cache = new ExpiringCache<string, DecodedEntry>({
    clock,
    intervalMs: EVICTION_INTERVAL_MS,
    max: entriesMax,
    weightOf,
    onEviction: () => {
      encodedObjects.evictOld()
      recentObjects.evictOld()
    },
  })
  const recentObjects = new LruCache<Uint8Array, Shared>(Math.min(RECENT_ENTRIES_MAX, entriesMax))
  /** Large objects are kept only until a few others have been decoded. */
  const recentLargeEntries: ({ readonly entry: Entry; readonly object: Shared } | undefined)[] = []
  let oldestIndex = 0
  const findRecent = ({ value, modRevision }: Entry): Shared | undefined => {
    const recentObject = recentObjects.get(value)
    // A transaction that is repeated after a failed commit may store the same bytes with another revision.
    return recentObject && Number(recentObject.metadata.resourceVersion) === modRevision ? recentObject : undefined
  }
  const findCached = (entry: Entry): Shared | undefined => {
    const cachedEntry = cache.get(idOf(entry))
    return cachedEntry && sameBytes(cachedEntry.value, entry.value) ? cachedEntry.object : undefined
  }
  const decodeWithCache = (entry: Entry): Shared => {
    const cachedObject = findCached(entry)
    if (cachedObject) return cachedObject
    const object = decodeStored(entry)
    cache.set(idOf(entry), { value: entry.value, object })
    return object
  }
  const decodeLarge = (entry: Entry): Shared => {
    for (const recentEntry of recentLargeEntries) if (recentEntry?.entry === entry) return recentEntry.object
    const object = decodeStored(entry)
    replaceOldestLarge({ entry, object })
    return object
  }
  const replaceOldestLarge = (recentEntry: (typeof recentLargeEntries)[number]) => {
    recentLargeEntries[oldestIndex] = recentEntry
    oldestIndex = (oldestIndex + 1) % RECENT_LARGE_ENTRIES_MAX
  }
  return {
    /**
     * Decodes an entry of a list that is read once, without adding it to the caches. They would keep the value of each entry until
     * 2,000 others are decoded, so that V8 moves it to the old generation and frees it only in a full collection.
     */
    decodeOnce: (entry: Entry): Shared => findRecent(entry) ?? findCached(entry) ?? decodeStored(entry),
    decode(entry: Entry): Shared {
      const { value } = entry
      const recentObject = findRecent(entry)
      if (recentObject) return recentObject
      if (value.length > CACHED_BYTES_MAX) return decodeLarge(entry)
      const object = decodeWithCache(entry)
      recentObjects.set(value, object)
      replaceOldestLarge(undefined)
      return object
    },
  }
}

const idOf = ({ modRevision, key }: Entry): string => `${modRevision} ${key}`

interface DecodedEntry {
  readonly value: Uint8Array
  readonly object: Shared
}

const RECENT_ENTRIES_MAX = 256
const RECENT_LARGE_ENTRIES_MAX = 4
const CACHED_ENTRIES_MAX = 2_000
/** An entry of this size counts as one, and larger ones as more: the cache holds at most 8 MiB of stored bytes. */
const WEIGHT_BYTES = 4 * 1024
const weightOf = ({ value }: DecodedEntry): number => Math.max(1, value.length / WEIGHT_BYTES)
/** How often unused entries are evicted, so that the memory of a burst is returned. */
const EVICTION_INTERVAL_MS = 60_000
/** Of larger objects only a few are cached, by identity. */
const CACHED_BYTES_MAX = 16 * 1024

export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a === b || Buffer.compare(a, b) === 0

/** Decodes bytes without the cache by revision. Revision 0 stands for an object that is not stored yet, or no longer stored. */
export function decodeStored({ value, modRevision }: Pick<Entry, 'value' | 'modRevision'>): Shared {
  encodesSinceDecode = 0
  const cachedEntry = encodedObjects.get(value)
  if (cachedEntry)
    return modRevision > 0 ? withVersion(freezeAsDecoded(cachedEntry), modRevision) : freezeAsDecoded(cachedEntry)
  const object = JSON.parse(bufferOf(value).toString('utf8'))
  if (modRevision > 0) object.metadata.resourceVersion = String(modRevision)
  return deepFreeze(object)
}

const withVersion = (object: Shared, revision: number): Shared => {
  const metadata = Object.freeze({ ...object.metadata, resourceVersion: String(revision) })
  return Object.freeze({ ...object, metadata })
}

export type StoredObjects = ReturnType<typeof createStoredObjects>

/** Returns an object in the form of a response or watch event of a group version. */
export function objectBytes(resource: Resource, value: Uint8Array, revision: number): Buffer {
  const head = `{"kind":"${resource.kind.kind}","apiVersion":"${resource.apiVersion}","metadata":{`
  const prefix = prefixOf(head, value, revision)
  const bytes = Buffer.allocUnsafe(prefix.length + value.length - HEAD_BYTES)
  bytes.write(prefix, 0, 'latin1')
  bytes.set(value.subarray(HEAD_BYTES), prefix.length)
  return bytes
}

/** Returns the bytes of items of a list, with commas between them. The items have no kind or apiVersion. */
export function itemBytes(entries: readonly Entry[]): Buffer {
  let bytesMax = 0
  for (const { value } of entries) bytesMax += value.length + VERSION_BYTES_MAX
  const bytes = Buffer.allocUnsafe(bytesMax)
  let offset = 0
  for (const [index, { value, modRevision }] of entries.entries()) {
    offset += bytes.write(
      index > 0 ? `,${prefixOf(HEAD, value, modRevision)}` : prefixOf(HEAD, value, modRevision),
      offset,
      'latin1',
    )
    bytes.set(value.subarray(HEAD_BYTES), offset)
    offset += value.length - HEAD_BYTES
  }
  return bytes.subarray(0, offset)
}

/** Returns the length of `itemBytes` without encoding the items. */
export function itemBytesLength(entries: readonly Entry[]): number {
  let length = Math.max(0, entries.length - 1)
  for (const { value, modRevision } of entries) {
    length += value.length + prefixOf('', value, modRevision).length
  }
  return length
}

/** Maximum number of bytes that a list adds to each item: a comma and the resourceVersion. */
const VERSION_BYTES_MAX = `,"resourceVersion":"${Number.MAX_SAFE_INTEGER}",`.length

function prefixOf(head: string, value: Uint8Array, revision: number): string {
  if (revision === 0) return head
  // 0x7d is "}": after empty metadata, which no object in the store has, a comma would be invalid JSON.
  const comma = value[HEAD_BYTES] === 0x7d ? '' : ','
  return `${head}"resourceVersion":"${revision}"${comma}`
}

const bufferOf = (value: Uint8Array): Buffer =>
  Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength)

/** Whether two stored forms are equal as JSON. The order of keys does not change the length. */
export function sameContent(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  if (Buffer.compare(a, b) === 0) return true
  return jsonEquals(JSON.parse(bufferOf(a).toString('utf8')), JSON.parse(bufferOf(b).toString('utf8')))
}
