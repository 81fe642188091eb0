// A write of an object that many writes change one after the other, such as a quota's use: it is put into words and bytes
// only if no later write of the same group commit replaces it. Whoever comes next, in that commit or soon after it, goes
// on from the running form itself, by way of `AdmissionRequest.listRunning`.
import type { KubeObject } from '../../api/kind.ts'
import { LruCache } from '../../base/lru-cache.ts'
import type { Entry, Put } from '../../store/index.ts'
import { encodeStored, type Shared, type StoredObjects, sameBytes } from './stored-object.ts'

export interface Running {
  /** As it is to be stored. Must not fail. */
  toObject(): KubeObject
}

export class RunningWrite implements Put {
  readonly isCoalescable = true
  readonly put: string
  readonly running: Running
  #value: Uint8Array | undefined

  constructor(key: string, running: Running) {
    this.put = key
    this.running = running
  }

  get value(): Uint8Array {
    if (!this.#value) {
      this.#value = encodeStored(this.running.toObject())
      lasts.set(this.put, this)
    }
    return this.#value
  }
}

/** What was put into bytes last, by key. It may not have been kept, or have been changed: only the same bytes count. */
const lasts = new LruCache<string, RunningWrite>(1_000)

/** What an earlier write left running, or else the object. */
export function runningOr(entry: Entry, objects: StoredObjects): Running | Shared {
  if (entry.coalescable instanceof RunningWrite) return entry.coalescable.running
  const last = lasts.get(entry.key)
  return last && sameBytes(last.value, entry.value) ? last.running : objects.decode(entry)
}
