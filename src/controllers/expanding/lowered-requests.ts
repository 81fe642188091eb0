// Tells people, on claim and volume, that a user lowered the size of a claim: what was asked of the storage before may
// have happened, and quota may go on charging it. Told when the edit is seen; an edit that nobody saw is told while its
// growth is still under way, unless an event says that it was.

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

type Claim = Readonly<PersistentVolumeClaim>

export interface LoweredDeps {
  readonly client: Client
  readonly claims: Cache<PersistentVolumeClaim>
  readonly events: Pick<EventRecorder, 'record'>
}

export class LoweredRequests {
  readonly #deps: LoweredDeps
  /** Claims whose last lowering is told, by uid and size. Each leaves when its growth is over. */
  readonly #told = new Map<ObjectKey, string>()

  constructor(deps: LoweredDeps) {
    this.#deps = deps
  }

  follow(subjectOf: (claim: Claim) => Subject | undefined): () => void {
    return this.#deps.claims.subscribe({
      updated: (next, old) => {
        if (!isLess(requestedStorage(next), requestedStorage(old))) return
        const subject = subjectOf(next)
        if (subject) this.#tell(subject, requestedStorage(old))
      },
    })
  }

  /** For a claim that is growing to more than it asks for. */
  async catchUp(subject: Subject, signal: AbortSignal): Promise<void> {
    const { claim } = subject
    const from = allocatedStorage(claim)
    if (from === undefined || !isLess(requestedStorage(claim), from) || resizeStateOf(claim) === undefined) return
    if (this.#told.get(keyOfObject(claim)) === tokenOf(claim)) return
    if (await this.#isTold(claim, signal)) this.#told.set(keyOfObject(claim), tokenOf(claim))
    else this.#tell(subject, from)
  }

  forget(key: ObjectKey): void {
    this.#told.delete(key)
  }

  #tell({ claim, volume }: Subject, from: string): void {
    this.#told.set(keyOfObject(claim), tokenOf(claim))
    const mark = claim.spec?.allocatedResources?.storage
    const to = requestedStorage(claim)
    const happening = requestLowered({
      claimKey: keyOfObject(claim),
      from,
      to,
      has: claimCapacity(claim),
      ...(mark !== undefined && isLess(to, mark) ? { charged: mark } : {}),
    })
    this.#deps.events.record(persistentVolumeClaimKind, claim, happening)
    this.#deps.events.record(persistentVolumeKind, volume, happening)
  }

  /** Where events cannot be read, nothing is told twice. */
  async #isTold(claim: Claim, signal: AbortSignal): Promise<boolean> {
    const { namespace = '', uid = '' } = claim.metadata
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
