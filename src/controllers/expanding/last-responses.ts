// Stores the driver's last response to ControllerExpandVolume for each claim. It is not persisted: after a restart the
// controller repeats the last call, which is idempotent.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export interface LastResponse {
  readonly uid: string | undefined
  /** The size that the driver rejected with a final error; undefined if the result of the last call is unknown. */
  readonly rejectedSize?: string
  /** Whether the driver rejected a call because the volume was in use. */
  readonly requiresOffline?: boolean
  /** A size that was requested without a final response. The volume may have this size, regardless of later responses. */
  readonly possibleSize?: string
}

/** Bounded by the number of expanding claims: an entry is removed when the expansion ends or the claim is deleted. */
export class LastResponses {
  readonly #byKey = new Map<ObjectKey, LastResponse>()

  of(claim: Claim): LastResponse | undefined {
    const response = this.#byKey.get(keyOfObject(claim))
    return response?.uid === claim.metadata.uid ? response : undefined
  }

  /**
   * Discards the earlier response, because the driver is called again. `isRepeated` means that the claim's status already
   * contained this size. If there is no response then, an earlier process may have called the driver.
   */
  recordCall(claim: Claim, size: string, isRepeated: boolean): void {
    const previous = this.of(claim)
    this.#put(claim, { possibleSize: isRepeated ? (previous ? previous.possibleSize : size) : undefined })
  }

  recordUncertain(claim: Claim, size: string): void {
    this.#put(claim, { possibleSize: size })
  }

  recordRejection(claim: Claim, size: string): void {
    this.#put(claim, { rejectedSize: size, possibleSize: this.of(claim)?.possibleSize })
  }

  recordInUseRejection(claim: Claim, size: string): void {
    this.#put(claim, { rejectedSize: size, possibleSize: this.of(claim)?.possibleSize, requiresOffline: true })
  }

  delete(key: ObjectKey): void {
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
