// Records an event on the claim and the volume when a user lowers the requested size, because the volume may already be expanded
// and quota may still charge the larger size. An edit that was made while no controller was running is reported later if
// the expansion is still in progress and no event exists.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { eventKind } from '../../api/kinds/event/event.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { ApiError } from '../../api/status-error.ts'
import { type Client, keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { Cache, EventRecorder } from '../../runtime/index.ts'
import { resizeStateOf } from '../../volumes/resize-status.ts'
import { allocatedStorage, claimCapacity, isLess, requestedStorage } from '../../volumes/sizes.ts'
import type { Subject } from '../volume-changes/index.ts'
import { LOWERED_REASON, requestLowered } from './events.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export interface LoweredRequestsDeps {
  readonly client: Client
  readonly claims: Cache<PersistentVolumeClaim>
  readonly events: Pick<EventRecorder, 'record'>
}

export class LoweredRequests {
  readonly #deps: LoweredRequestsDeps
  /** The last reported edit (uid and size) by claim. An entry is removed when the expansion ends. */
  readonly #reportedEdits = new Map<ObjectKey, string>()

  constructor(deps: LoweredRequestsDeps) {
    this.#deps = deps
  }

  follow(subjectOf: (claim: Claim) => Subject | undefined): () => void {
    return this.#deps.claims.subscribe({
      updated: (next, old) => {
        if (!isLess(requestedStorage(next), requestedStorage(old))) return
        const subject = subjectOf(next)
        if (subject) this.#report(subject, requestedStorage(old))
      },
    })
  }

  /** Reports an edit that was not observed, if the claim is expanding to more than it requests. */
  async reportMissedEdit(subject: Subject, signal: AbortSignal): Promise<void> {
    const { claim } = subject
    const previousSize = allocatedStorage(claim)
    if (
      previousSize === undefined ||
      !isLess(requestedStorage(claim), previousSize) ||
      resizeStateOf(claim) === undefined
    )
      return
    if (this.#reportedEdits.get(keyOfObject(claim)) === editOf(claim)) return
    if (await this.#hasEvent(claim, signal)) this.#reportedEdits.set(keyOfObject(claim), editOf(claim))
    else this.#report(subject, previousSize)
  }

  has(key: ObjectKey): boolean {
    return this.#reportedEdits.has(key)
  }

  delete(key: ObjectKey): void {
    this.#reportedEdits.delete(key)
  }

  #report({ claim, volume }: Subject, previousSize: string): void {
    this.#reportedEdits.set(keyOfObject(claim), editOf(claim))
    const highWaterMark = claim.spec?.allocatedResources?.storage
    const requestedSize = requestedStorage(claim)
    const event = requestLowered({
      claimKey: keyOfObject(claim),
      previousSize,
      requestedSize,
      currentSize: claimCapacity(claim),
      chargedSize: highWaterMark !== undefined && isLess(requestedSize, highWaterMark) ? highWaterMark : undefined,
    })
    this.#deps.events.record(persistentVolumeClaimKind, claim, event)
    this.#deps.events.record(persistentVolumeKind, volume, event)
  }

  /** Returns true if events cannot be read, because a missing event is better than a repeated one. */
  async #hasEvent(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const { namespace, uid } = claim.metadata
    const fieldSelector = `involvedObject.uid=${uid},reason=${LOWERED_REASON}`
    try {
      const { items } = await this.#deps.client.list(eventKind, { namespace, fieldSelector, signal })
      return items.some(({ message = '' }) => message.includes(` to ${requestedStorage(claim)};`))
    } catch (error) {
      if (error instanceof ApiError) return true
      throw error
    }
  }
}

const editOf = (claim: Claim): string => `${claim.metadata.uid} ${requestedStorage(claim)}`
