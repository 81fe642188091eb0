// A write of an object that many consecutive writes change, such as a quota. The object is encoded only if no later write of
// the same group commit replaces it. Later writes read the live object from `AdmissionRequest.listLive` without decoding.
import type { KubeObject } from '../../api/kind.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { Entry, Put } from '../../store/index.ts'
import { encodeStored, type Shared, type StoredObjects, sameBytes } from './stored-object.ts'

/** The in-memory form of an object that is expensive to encode and decode for every change. */
export interface LiveObject {
  /** Returns the object to store. Must not throw. */
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
      lastEncodedWrites.set(this.put, this)
    }
    return this.#value
  }
}

/** The last encoded write of each key. Its bytes must be compared with the stored bytes, because the write may have failed. */
const lastEncodedWrites = new LruCache<string, CoalescableWrite>(1_000)

/** Returns the live object of the last write if it is current, otherwise the decoded object. */
export function liveObjectOf(entry: Entry, objects: StoredObjects): LiveObject | Shared {
  if (entry.coalescablePut instanceof CoalescableWrite) return entry.coalescablePut.object
  const lastWrite = lastEncodedWrites.get(entry.key)
  return lastWrite && sameBytes(lastWrite.value, entry.value) ? lastWrite.object : objects.decode(entry)
}
