// A write of an object that many writes change one after the other, such as a quota's use: it is put into words and bytes
// only if no later write of the same group commit replaces it. Whoever comes next in that commit takes up the running
// form itself, by way of `AdmissionRequest.listRunning`.
import type { KubeObject } from '../api/kind.ts'
import type { Entry, Put } from '../store/index.ts'
import { encodeStored, type Shared, type StoredObjects } from './stored-object.ts'

export interface Running {
  /** As it is to be stored. Must not fail. */
  toObject(): KubeObject
}

export class RunningWrite implements Put {
  readonly isPassing = true
  readonly put: string
  readonly running: Running
  #value: Uint8Array | undefined

  constructor(key: string, running: Running) {
    this.put = key
    this.running = running
  }

  get value(): Uint8Array {
    this.#value ??= encodeStored(this.running.toObject())
    return this.#value
  }
}

/** What an earlier write of the same group commit left running, or else the object. */
export const runningOr = (entry: Entry, objects: StoredObjects): Running | Shared =>
  entry.passing instanceof RunningWrite ? entry.passing.running : objects.decode(entry)
