// Stores, for each claim, the size that its volume may have because ControllerExpandVolume did not give a final response,
// whether the driver requires the volume to be unused, and what the user requested at the last attempt. The records are not
// persisted: after a restart an expansion in progress counts as unanswered.
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import { RETRY_ANNOTATION } from '../../runtime/operations/retry-request.ts'
import { resizeStateOf } from '../../volumes/resize-status.ts'
import { allocatedStorage, maxQuantity, requestedStorage } from '../../volumes/sizes.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

interface ExpansionRecord {
  readonly uid: string
  /** The largest size that was requested without a final response. The volume may have it, regardless of later responses. */
  readonly possibleSize?: string
  /** Whether the driver rejected a call because the volume was in use. */
  readonly requiresOffline?: boolean
  /** Number of checks of the actual size before a cancellation that failed with a final error. */
  readonly failedSizeChecks?: number
}

/** Bounded by the number of expanding claims: an entry is removed when the expansion ends or the claim is deleted. */
export class ExpansionRecords {
  readonly #byKey = new Map<ObjectKey, ExpansionRecord>()
  /** By claim: the user's request at the last attempt. Kept until the expansion ends, including the node expansion. */
  readonly #attempts = new Map<ObjectKey, { readonly uid: string; readonly request: string }>()

  /** Returns the size that the volume may have after a call without a final response, or undefined without such a call. */
  possibleSize(claim: Claim): string | undefined {
    const record = this.#get(claim)
    if (record) return record.possibleSize
    return resizeStateOf(claim) === 'ControllerResizeInProgress' ? allocatedStorage(claim) : undefined
  }

  /** Returns false if this process has recorded no call for the claim. */
  has(claim: Claim): boolean {
    return this.#get(claim) !== undefined
  }

  /** Whether this process has recorded a call or an attempt for a claim of this name. */
  hasAny(key: ObjectKey): boolean {
    return this.#byKey.has(key) || this.#attempts.has(key)
  }

  /** Must be called before the driver is called: until the driver responds, the volume may have this size. */
  recordCall(claim: Claim, size: string, previousPossibleSize: string | undefined): void {
    const possibleSize = previousPossibleSize === undefined ? size : maxQuantity(previousPossibleSize, size)
    this.#set(claim, { possibleSize, requiresOffline: this.requiresOffline(claim) })
  }

  /** Restores the possible size from before the call, because a rejected call changes nothing. */
  recordRejection(claim: Claim, previousPossibleSize: string | undefined, { isInUse = false } = {}): void {
    const requiresOffline = isInUse || this.requiresOffline(claim)
    this.#set(claim, { possibleSize: previousPossibleSize, requiresOffline })
  }

  /** The driver returned the actual size, so no other size is possible. */
  recordSuccess(claim: Claim): void {
    this.#set(claim, { requiresOffline: this.requiresOffline(claim) })
  }

  /** Records a check of the actual size that failed with a final error. Returns the number of such checks. */
  recordFailedSizeCheck(claim: Claim): number {
    const possibleSize = this.possibleSize(claim)
    const failedSizeChecks = (this.#get(claim)?.failedSizeChecks ?? 0) + 1
    this.#set(claim, { possibleSize, requiresOffline: this.requiresOffline(claim), failedSizeChecks })
    return failedSizeChecks
  }

  delete(key: ObjectKey): void {
    this.#byKey.delete(key)
  }

  recordAttempt(claim: Claim): void {
    this.#attempts.set(keyOfObject(claim), { uid: claim.metadata.uid, request: userRequestOf(claim) })
  }

  /** Returns whether the user has edited the claim since the last attempt. */
  isEditedSinceAttempt(claim: Claim): boolean {
    const attempt = this.#attempts.get(keyOfObject(claim))
    if (attempt?.uid === claim.metadata.uid) return attempt.request !== userRequestOf(claim)
    // Another process made the attempt. It requested the allocated size.
    const allocatedSize = allocatedStorage(claim)
    return allocatedSize !== undefined && requestedStorage(claim) !== allocatedSize
  }

  deleteAttempt(key: ObjectKey): void {
    this.#attempts.delete(key)
  }

  requiresOffline(claim: Claim): boolean {
    return this.#get(claim)?.requiresOffline ?? false
  }

  get size(): number {
    return this.#byKey.size
  }

  #get(claim: Claim): ExpansionRecord | undefined {
    const record = this.#byKey.get(keyOfObject(claim))
    return record?.uid === claim.metadata.uid ? record : undefined
  }

  #set(claim: Claim, record: Omit<ExpansionRecord, 'uid'>): void {
    this.#byKey.set(keyOfObject(claim), { ...record, uid: claim.metadata.uid })
  }
}

/** Returns fields that users edit, for comparison. A request to retry is an edit. */
const userRequestOf = ({ metadata: { labels, annotations }, spec }: Claim): string =>
  JSON.stringify([spec?.resources, spec?.volumeAttributesClassName, labels, annotations?.[RETRY_ANNOTATION]])
