// How objects are written into the store and back: JSON with metadata first and without apiVersion, kind
// and resourceVersion, so that any group version's answer is a short prefix plus the stored bytes as they are.
//   stored    {"metadata":{"name":"a",…},"spec":…}
//   answered  {"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a",…},"spec":…}
import { jsonEquals } from '../../api/json-value.ts'
import type { KubeObject } from '../../api/kind.ts'
import { deepFreeze } from '../../base/freeze.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { Entry } from '../../store/index.ts'
import type { Resource } from '../resources.ts'

const HEAD = '{"metadata":{'
const HEAD_BYTES = HEAD.length

/** An object as readers see it: frozen, with its resourceVersion, shared by everyone who asks. */
export type Shared<T extends KubeObject = KubeObject> = Readonly<T>

/**
 * What was written last, by its bytes: most of it is read at once by whoever wrote it and by those who watch. So many as
 * are written at once, and no more: what is kept longer than that is moved about by the garbage collector.
 */
const written = new LruCache<Uint8Array, Shared>(500)
/** After so many writes that nobody decoded, none is kept until somebody does: that is cheaper for the collector still. */
const UNREAD_MAX = 2_000
let unread = 0

/** Takes the object over: nobody may change it from here on. It answers whoever decodes these very bytes soon. */
export function encodeStored(object: KubeObject): Buffer {
  const stored = storedForm(object)
  const value = Buffer.from(JSON.stringify(stored), 'utf8')
  if (unread < UNREAD_MAX) {
    written.set(value, stored)
    unread++
  }
  return value
}

/** Its metadata comes first, and says no version. */
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
 * As JSON would bring it back: without what is undefined. Frozen on the way; what is frozen came from there. Done for
 * those who read: most of what a busy server writes is read by nobody soon.
 */
function settle<T extends object>(value: T): T {
  if (Object.isFrozen(value)) return value
  const fields = value as Record<string, unknown>
  for (const key of Object.keys(fields)) {
    const inner = fields[key]
    if (inner === undefined) delete fields[key]
    else if (typeof inner === 'object' && inner !== null) settle(inner)
  }
  return Object.freeze(value)
}

/**
 * Decodes stored bytes; the last few thousand are remembered, keyed by revision and key. The bytes are compared all the
 * same: a transaction sees those before it in its group commit, and if the disk refuses them, others get their revisions.
 * The transactions of a group commit ask for the same few entries again and again: these are known by themselves.
 */
export function createStoredObjects(rememberedMax = 8_000) {
  const remembered = new LruCache<string, { readonly value: Uint8Array; readonly object: Shared }>(rememberedMax)
  const lately: { readonly entry: Entry; readonly object: Shared }[] = []
  let oldest = 0
  const look = (entry: Entry): Shared => {
    const id = `${entry.modRevision} ${entry.key}`
    const known = remembered.get(id)
    if (known && sameBytes(known.value, entry.value)) return known.object
    const object = decodeStored(entry)
    remembered.set(id, { value: entry.value, object })
    return object
  }
  return {
    decode(entry: Entry): Shared {
      for (const one of lately) if (one.entry === entry) return one.object
      const object = look(entry)
      lately[oldest] = { entry, object }
      oldest = (oldest + 1) % LATELY_MAX
      return object
    },
  }
}

const LATELY_MAX = 4

export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a === b || Buffer.compare(a, b) === 0

/** Without remembering: for bytes that are not what the store has at this version. */
export function decodeStored({ value, modRevision }: Pick<Entry, 'value' | 'modRevision'>): Shared {
  unread = 0
  const fresh = written.get(value)
  if (fresh) return modRevision > 0 ? withVersion(settle(fresh), modRevision) : settle(fresh)
  const object = JSON.parse(bufferOf(value).toString('utf8'))
  if (modRevision > 0) object.metadata.resourceVersion = String(modRevision)
  return deepFreeze(object)
}

const withVersion = (object: Shared, revision: number): Shared => {
  const metadata = Object.freeze({ ...object.metadata, resourceVersion: String(revision) })
  return Object.freeze({ ...object, metadata })
}

export type StoredObjects = ReturnType<typeof createStoredObjects>

/** The bytes of one object as an answer or watch event of a group version carries it. */
export function answerBytes(resource: Resource, value: Uint8Array, revision: number): Buffer {
  const head = `{"kind":"${resource.kind.kind}","apiVersion":"${resource.apiVersion}","metadata":{`
  const prefix = prefixOf(head, value, revision)
  const bytes = Buffer.allocUnsafe(prefix.length + value.length - HEAD_BYTES)
  bytes.write(prefix, 0, 'latin1')
  bytes.set(value.subarray(HEAD_BYTES), prefix.length)
  return bytes
}

/** A whole list, its items without kind and apiVersion; written into one buffer, as there may be very many of them. */
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

/** What a list adds to each item: a comma before it, and its version. */
const VERSION_BYTES_MAX = `,"resourceVersion":"${Number.MAX_SAFE_INTEGER}",`.length

function prefixOf(head: string, value: Uint8Array, revision: number): string {
  if (revision === 0) return head
  // 0x7d is "}": metadata is never empty in the store, but a comma before nothing would be fatal.
  const comma = value[HEAD_BYTES] === 0x7d ? '' : ','
  return `${head}"resourceVersion":"${revision}"${comma}`
}

export const bufferOf = (value: Uint8Array): Buffer =>
  Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength)

/** Whether two stored forms say the same. Keys in another order make other bytes, but just as many of them. */
export function sameContent(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  if (Buffer.compare(a, b) === 0) return true
  return jsonEquals(JSON.parse(bufferOf(a).toString('utf8')), JSON.parse(bufferOf(b).toString('utf8')))
}
