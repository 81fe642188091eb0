// Records an event on claim and volume when a user lowers the requested size: an earlier expansion may have taken
// effect, and quota may still charge it. An edit made while no controller watched is reported while the expansion is in
// progress, unless an event for it exists.
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

export interface LoweredDeps {
  readonly client: Client
  readonly claims: Cache<PersistentVolumeClaim>
  readonly events: Pick<EventRecorder, 'record'>
}

export class LoweredRequests {
  readonly #deps: LoweredDeps
  /** The last reported edit (uid and size) of each claim. Entries are removed when the expansion ends. */
  readonly #reported = new Map<ObjectKey, string>()

  constructor(deps: LoweredDeps) {
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

  /** Reports an edit that was not observed: the claim is expanding to more than it requests. */
  async catchUp(subject: Subject, signal: AbortSignal): Promise<void> {
    const { claim } = subject
    const from = allocatedStorage(claim)
    if (from === undefined || !isLess(requestedStorage(claim), from) || resizeStateOf(claim) === undefined) return
    if (this.#reported.get(keyOfObject(claim)) === tokenOf(claim)) return
    if (await this.#hasEvent(claim, signal)) this.#reported.set(keyOfObject(claim), tokenOf(claim))
    else this.#report(subject, from)
  }

  forget(key: ObjectKey): void {
    this.#reported.delete(key)
  }

  #report({ claim, volume }: Subject, from: string): void {
    this.#reported.set(keyOfObject(claim), tokenOf(claim))
    const highWaterMark = claim.spec?.allocatedResources?.storage
    const to = requestedStorage(claim)
    const event = requestLowered({
      claimKey: keyOfObject(claim),
      from,
      to,
      has: claimCapacity(claim),
      charged: highWaterMark !== undefined && isLess(to, highWaterMark) ? highWaterMark : undefined,
    })
    this.#deps.events.record(persistentVolumeClaimKind, claim, event)
    this.#deps.events.record(persistentVolumeKind, volume, event)
  }

  /** True also if events cannot be read: a missing event is better than a repeated one. */
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

const tokenOf = (claim: Claim): string => `${claim.metadata.uid} ${requestedStorage(claim)}`
