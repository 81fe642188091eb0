// The claims that this process has started to provision for: the stage of each, and the request to repeat when the result
// of a call is unknown. Only in memory; after a crash, the intent on the claim remains (intent.ts).
//
//   nothing → unknown → unsaved → saved
//      ↑         │          │
//      └─────────┴── unwanted    rejected by the API server, superseded by another volume, or a mismatch

import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { ProvisionRequest } from './provisioner.ts'

export type Stage =
  /** No volume exists: the storage was not called, or confirmed it. */
  | { readonly is: 'nothing' }
  /** A volume may exist. Without a request, an earlier process made the call. */
  | { readonly is: 'unknown'; readonly request?: ProvisionRequest }
  /** Provisioned, the PV is not created yet. */
  | {
      readonly is: 'unsaved'
      readonly volume: PersistentVolume
      readonly retries: number
      /** How many of the tries the API server rejected. */
      readonly rejections: number
      readonly notBeforeMs: number
    }
  /** Provisioned, and to be deleted. */
  | {
      readonly is: 'unwanted'
      readonly volume: PersistentVolume
      readonly because: string
      readonly retries: number
      readonly notBeforeMs: number
    }
  /** The PV was created at this version. Kept until the cache shows it. */
  | { readonly is: 'saved'; readonly resourceVersion: string }

export interface Attempt {
  /** As last read; the object may be deleted since. */
  claim: Claim
  stage: Stage
  /** When the storage was last called, by the monotonic clock. */
  startedMs: number
  /** The same request will fail again: no retry before then, unless the class was replaced. */
  infeasible: { readonly untilMs: number; readonly classUid: string; readonly because: string } | undefined
}

/**
 * Bounded by the claims that request a volume from this provisioner, and deleted claims whose volume is still in an
 * unknown state: each is removed when its work is done.
 */
export class Attempts {
  readonly #byKey = new Map<ObjectKey, Map<string, Attempt>>()

  of(claim: Claim): Attempt | undefined {
    return this.at(keyOfObject(claim), claim.metadata.uid)
  }

  at(key: ObjectKey, uid: string): Attempt | undefined {
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
    const attempt: Attempt = { claim, stage, startedMs: 0, infeasible: undefined }
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

  /** Attempts for earlier claims of this name. */
  ofEarlierClaims(key: ObjectKey, currentUid: string | undefined): Attempt[] {
    const byUid = this.#byKey.get(key)
    return byUid ? [...byUid.values()].filter(({ claim }) => claim.metadata.uid !== currentUid) : []
  }

  get size(): number {
    let size = 0
    for (const byUid of this.#byKey.values()) size += byUid.size
    return size
  }
}

export const mayExist = ({ is }: Stage): boolean => is === 'unknown' || is === 'unsaved' || is === 'unwanted'
