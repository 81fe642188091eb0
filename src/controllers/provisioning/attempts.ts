// The claims for which this process has started to provision a volume: the stage of each, and the request to repeat if the
// result of a call is unknown. They are in memory only; after a crash, the recorded intents remain (intent.ts).
//
//   nothing → unknown → unsaved → saved
//      ↑         │          │
//      └─────────┴── unwanted    rejected by the API server, superseded by another volume, or a mismatch

import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { OperationDetails } from '../../base/operation-details.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { ProvisionRequest } from './provisioner.ts'

export type Stage =
  /** No volume exists for the claim. */
  | { readonly is: 'nothing' }
  /** A volume may exist. Without a request, the call is repeated with one for the current claim and class. */
  | { readonly is: 'unknown'; readonly request?: ProvisionRequest }
  /** The volume is provisioned, but its PV is not created yet. */
  | {
      readonly is: 'unsaved'
      readonly volume: PersistentVolume
      readonly retries: number
      /** Number of attempts that the API server rejected. */
      readonly rejections: number
      readonly notBeforeMs: number
    }
  /** The volume is provisioned and must be deleted. */
  | {
      readonly is: 'unwanted'
      readonly volume: PersistentVolume
      readonly message: string
      readonly retries: number
      readonly notBeforeMs: number
    }
  /** The PV was created with this resourceVersion. The attempt remains until the cache contains it. */
  | { readonly is: 'saved'; readonly resourceVersion: string }

export interface Attempt {
  /** The claim as last read. The object may have been deleted since. */
  claim: Claim
  stage: Stage
  /** Time of the last call to the storage, by the monotonic clock. */
  callStartedMs: number
  /** Set if the same request will fail again. It is not retried before `untilMs` unless the class is replaced. */
  infeasible: { readonly untilMs: number; readonly classUid: string; readonly message: string } | undefined
  /** The details of the last failed call to the storage, for the list of operations. */
  details?: OperationDetails
}

/**
 * All attempts of this process. Their number is bounded by the claims that request a volume from this provisioner and the
 * deleted claims whose volume is in an unknown state.
 */
export class Attempts {
  readonly #byKey = new Map<ObjectKey, Map<string, Attempt>>()

  /** Ends the waits of the attempts for a claim, because a user requests a retry. */
  endWaits(key: ObjectKey): void {
    for (const attempt of this.#byKey.get(key)?.values() ?? []) {
      attempt.infeasible = undefined
      if ('notBeforeMs' in attempt.stage) attempt.stage = { ...attempt.stage, notBeforeMs: 0 }
    }
  }

  of(claim: Claim): Attempt | undefined {
    return this.get(keyOfObject(claim), claim.metadata.uid)
  }

  get(key: ObjectKey, uid: string): Attempt | undefined {
    return this.#byKey.get(key)?.get(uid)
  }

  /** Whether there is an attempt for a claim of that name, existing or deleted. */
  has(key: ObjectKey): boolean {
    return this.#byKey.has(key)
  }

  getOrCreate(claim: Claim, stage: Stage): Attempt {
    const existing = this.of(claim)
    if (existing) {
      existing.claim = claim
      return existing
    }
    const attempt: Attempt = { claim, stage, callStartedMs: 0, infeasible: undefined }
    const key = keyOfObject(claim)
    const byUid = this.#byKey.get(key) ?? new Map<string, Attempt>()
    this.#byKey.set(key, byUid.set(claim.metadata.uid, attempt))
    return attempt
  }

  forget(claim: Claim): void {
    const key = keyOfObject(claim)
    const byUid = this.#byKey.get(key)
    byUid?.delete(claim.metadata.uid)
    if (byUid?.size === 0) this.#byKey.delete(key)
  }

  /** Returns the attempts for earlier claims of this name. */
  ofEarlierClaims(key: ObjectKey, currentUid: string | undefined): Attempt[] {
    const byUid = this.#byKey.get(key)
    return byUid ? [...byUid.values()].filter(({ claim }) => claim.metadata.uid !== currentUid) : []
  }

  /** Returns the keys of the claims, existing or deleted, with an attempt for which `matches` returns true. */
  keysOf(matches: (attempt: Attempt) => boolean): ObjectKey[] {
    return [...this.#byKey].filter(([, byUid]) => [...byUid.values()].some(matches)).map(([key]) => key)
  }

  get size(): number {
    let size = 0
    for (const byUid of this.#byKey.values()) size += byUid.size
    return size
  }
}

export const volumeMayExist = ({ is }: Stage): boolean => is === 'unknown' || is === 'unsaved' || is === 'unwanted'
