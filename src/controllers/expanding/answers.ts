// What this process knows of the driver's last answers, by claim. All of it may be lost at any moment: the driver is then
// asked once more for what it was asked last, which is always safe.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'

type Claim = Readonly<PersistentVolumeClaim>

export interface Answer {
  readonly uid: string
  /** The size it will not give, and does not have. Undefined: nobody knows. */
  readonly refused?: string
  /** It said once that the volume must not be in use. */
  readonly isOffline?: true
  /** A size that was asked for without an answer: the volume may have it, whatever was said since. */
  readonly mayHave?: string
}

type Sizes = { [size in 'refused' | 'mayHave']: string | undefined }

/** Bounded by the claims that are growing: each leaves when it has grown, gave up, or is gone. */
export class Answers {
  readonly #byKey = new Map<ObjectKey, Answer>()

  of(claim: Claim): Answer | undefined {
    const answer = this.#byKey.get(keyOfObject(claim))
    return answer?.uid === claim.metadata.uid ? answer : undefined
  }

  /**
   * The driver is being asked: what it said before is no longer the last word. `isRepeated`: the claim told of this size
   * before, so that one who knows no answer to it must take it for unanswered.
   */
  asking(claim: Claim, size: string, isRepeated: boolean): void {
    const known = this.of(claim)
    this.#put(claim, { refused: undefined, mayHave: isRepeated ? (known ? known.mayHave : size) : undefined })
  }

  unanswered(claim: Claim, size: string): void {
    this.#put(claim, { refused: undefined, mayHave: size })
  }

  refused(claim: Claim, size: string): void {
    this.#put(claim, { refused: size, mayHave: this.of(claim)?.mayHave })
  }

  refusedInUse(claim: Claim, size: string): void {
    this.#put(claim, { refused: size, mayHave: this.of(claim)?.mayHave, isOffline: true })
  }

  forget(key: ObjectKey): void {
    this.#byKey.delete(key)
  }

  isOffline(key: ObjectKey): boolean {
    return this.#byKey.get(key)?.isOffline ?? false
  }

  get size(): number {
    return this.#byKey.size
  }

  #put(claim: Claim, { refused, mayHave, isOffline }: Sizes & { isOffline?: true }): void {
    const offline = isOffline ?? this.of(claim)?.isOffline
    this.#byKey.set(keyOfObject(claim), {
      uid: claim.metadata.uid ?? '',
      ...(refused === undefined ? {} : { refused }),
      ...(mayHave === undefined ? {} : { mayHave }),
      ...(offline ? { isOffline: offline } : {}),
    })
  }
}
