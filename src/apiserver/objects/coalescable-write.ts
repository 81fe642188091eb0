// A write of an object that many writes change in a row, such as the usage of a quota. It is encoded only if no later write
// of the same group commit replaces it. The next write of that group commit, or one soon after it, gets the live object
// from `AdmissionRequest.listLive` instead of decoding the stored one.
import type { KubeObject } from '../../api/kind.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { Entry, Put } from '../../store/index.ts'
import { encodeStored, type Shared, type StoredObjects, sameBytes } from './stored-object.ts'

/** The in-memory form of an object that is expensive to encode and decode for every change. */
export interface LiveObject {
  /** The object to store. Must not throw. */
  toObject(): KubeObject
}

export class CoalescableWrite implements Put {
  readonly isCoalescable = true
  readonly put: string
  readonly object: LiveObject
  #value: Uint8Array | undefined

  constructor(key: string, object: LiveObject) {
    this.put = key
    this.object = object
  }

  get value(): Uint8Array {
    if (!this.#value) {
      this.#value = encodeStored(this.object.toObject())
      lastEncoded.set(this.put, this)
    }
    return this.#value
  }
}

/** The write encoded last, by key. It may not have been stored, or been replaced since: compare the bytes. */
const lastEncoded = new LruCache<string, CoalescableWrite>(1_000)

/** The live object of the last write, if it is still current; else the decoded one. */
export function liveOrDecoded(entry: Entry, objects: StoredObjects): LiveObject | Shared {
  if (entry.coalescable instanceof CoalescableWrite) return entry.coalescable.object
  const last = lastEncoded.get(entry.key)
  return last && sameBytes(last.value, entry.value) ? last.object : objects.decode(entry)
}
