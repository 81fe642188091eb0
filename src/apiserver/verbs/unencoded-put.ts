// A write of an object that the next write of the same commit changes again, such as the spec of an object whose status follows.
// The next write continues with the object, so its bytes are encoded only if that write changes nothing.
import type { KubeObject } from '../../api/kind.ts'
import type { Entry, Put, Revision, Write } from '../../store/index.ts'
import { encodeStored } from '../objects/stored-object.ts'
import type { WritePlan, WriteResult } from '../objects/write-verb.ts'

export class UnencodedPut implements Put {
  readonly put: string
  readonly object: KubeObject
  #value: Uint8Array | undefined

  constructor(key: string, object: KubeObject) {
    this.put = key
    this.object = object
  }

  get value(): Uint8Array {
    this.#value ??= encodeStored(this.object)
    return this.#value
  }
}

/** The entry that the next write of the commit reads. */
export class UnencodedEntry implements Entry {
  readonly write: UnencodedPut
  readonly modRevision: Revision
  readonly createRevision: Revision

  constructor(write: UnencodedPut, modRevision: Revision, createRevision: Revision) {
    this.write = write
    this.modRevision = modRevision
    this.createRevision = createRevision
  }

  get key(): string {
    return this.write.put
  }

  get value(): Uint8Array {
    return this.write.value
  }
}

/** Builds the plan of a write that another write of the same object follows. */
export const unencodedPlan = (
  key: string,
  object: KubeObject,
  { admissionWrites, warnings, change, created = false }: UnencodedPlanParts,
): WritePlan => ({
  writes: [new UnencodedPut(key, object), ...admissionWrites],
  result: { value: NO_VALUE, revision: 0, created, deleted: false, warnings },
  change,
})

interface UnencodedPlanParts extends Pick<WriteResult, 'warnings'>, Required<Pick<WritePlan, 'change'>> {
  readonly admissionWrites: readonly Write[]
  readonly created?: boolean
}

/** The value of a result that executeCommit replaces by that of the last write of the object. */
export const NO_VALUE = new Uint8Array()
