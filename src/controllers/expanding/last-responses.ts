// Remembers the driver's last response to ControllerExpandVolume for each claim. In memory only: after a restart the
// controller repeats the last call, which is idempotent.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export interface LastResponse {
  readonly uid: string | undefined
  /** The size that the driver rejected with a final error. Undefined: the result of the last call is unknown. */
  readonly rejected?: string
  /** The driver rejected a call because the volume was in use. */
  readonly requiresOffline?: boolean
  /** A size that was requested without a final response: the volume may have it, regardless of later responses. */
  readonly possibleSize?: string
}

/** Bounded by the claims that are expanding: an entry is removed when the expansion ends or the claim is deleted. */
export class LastResponses {
  readonly #byKey = new Map<ObjectKey, LastResponse>()

  of(claim: Claim): LastResponse | undefined {
    const response = this.#byKey.get(keyOfObject(claim))
    return response?.uid === claim.metadata.uid ? response : undefined
  }

  /**
   * The driver is being called, so the earlier response no longer holds. `isRepeated`: the claim's status already named
   * this size; if no response to it is known, an earlier process may have called the driver without learning the result.
   */
  calling(claim: Claim, size: string, isRepeated: boolean): void {
    const known = this.of(claim)
    this.#put(claim, { possibleSize: isRepeated ? (known ? known.possibleSize : size) : undefined })
  }

  uncertain(claim: Claim, size: string): void {
    this.#put(claim, { possibleSize: size })
  }

  rejected(claim: Claim, size: string): void {
    this.#put(claim, { rejected: size, possibleSize: this.of(claim)?.possibleSize })
  }

  rejectedInUse(claim: Claim, size: string): void {
    this.#put(claim, { rejected: size, possibleSize: this.of(claim)?.possibleSize, requiresOffline: true })
  }

  forget(key: ObjectKey): void {
    this.#byKey.delete(key)
  }

  requiresOffline(key: ObjectKey): boolean {
    return this.#byKey.get(key)?.requiresOffline ?? false
  }

  get size(): number {
    return this.#byKey.size
  }

  #put(claim: Claim, response: Omit<LastResponse, 'uid'>): void {
    const { requiresOffline = this.of(claim)?.requiresOffline } = response
    this.#byKey.set(keyOfObject(claim), { ...response, uid: claim.metadata.uid, requiresOffline })
  }
}
