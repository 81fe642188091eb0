// Stores, for each claim, the size that its volume may have because ControllerExpandVolume did not give a final response,
// and whether the driver requires the volume to be unused. It is not persisted: after a restart an expansion in progress
// counts as unanswered.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { resizeStateOf } from '../../volumes/resize-status.ts'
import { allocatedStorage, larger } from '../../volumes/sizes.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

interface LastResponse {
  readonly uid: string
  /** The largest size that was requested without a final response. The volume may have it, regardless of later responses. */
  readonly possibleSize?: string
  /** Whether the driver rejected a call because the volume was in use. */
  readonly requiresOffline?: boolean
  /** How often the driver failed to report the actual size before a cancellation. */
  readonly checks?: number
}

/** Bounded by the number of expanding claims: an entry is removed when the expansion ends or the claim is deleted. */
export class LastResponses {
  readonly #byKey = new Map<ObjectKey, LastResponse>()

  /** Returns undefined if the volume has its recorded size. */
  possibleSize(claim: Claim): string | undefined {
    const known = this.#of(claim)
    if (known) return known.possibleSize
    return resizeStateOf(claim) === 'ControllerResizeInProgress' ? allocatedStorage(claim) : undefined
  }

  /** Returns false if the calls are not known because another process made them. */
  isKnown(claim: Claim): boolean {
    return this.#of(claim) !== undefined
  }

  /** Call before the driver is called: until it answers, the volume may have this size. */
  recordCall(claim: Claim, size: string, possibleBefore: string | undefined): void {
    const possibleSize = possibleBefore === undefined ? size : larger(possibleBefore, size)
    this.#put(claim, { possibleSize, requiresOffline: this.requiresOffline(claim) })
  }

  /** Restores the possible size from before the call, because a rejected call changes nothing. */
  recordRejection(claim: Claim, possibleBefore: string | undefined, { isInUse = false } = {}): void {
    const requiresOffline = isInUse || this.requiresOffline(claim)
    this.#put(claim, { possibleSize: possibleBefore, requiresOffline })
  }

  /** The driver returned the actual size, so no other size is possible. */
  recordSuccess(claim: Claim): void {
    this.#put(claim, { requiresOffline: this.requiresOffline(claim) })
  }

  /** Counts a check of the actual size that failed with a final error. */
  countCheck(claim: Claim): number {
    const possibleSize = this.possibleSize(claim)
    const checks = (this.#of(claim)?.checks ?? 0) + 1
    this.#put(claim, { possibleSize, requiresOffline: this.requiresOffline(claim), checks })
    return checks
  }

  delete(key: ObjectKey): void {
    this.#byKey.delete(key)
  }

  requiresOffline(claim: Claim): boolean {
    return this.#of(claim)?.requiresOffline ?? false
  }

  get size(): number {
    return this.#byKey.size
  }

  #of(claim: Claim): LastResponse | undefined {
    const response = this.#byKey.get(keyOfObject(claim))
    return response?.uid === claim.metadata.uid ? response : undefined
  }

  #put(claim: Claim, response: Omit<LastResponse, 'uid'>): void {
    this.#byKey.set(keyOfObject(claim), { ...response, uid: claim.metadata.uid })
  }
}
