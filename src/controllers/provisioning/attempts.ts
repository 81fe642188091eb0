// What this process knows about the claims it has begun: how far each came, and the request to repeat where the end of
// a try is not known. All of it may be lost at any moment; the intent on the claim is what lasts (intent.ts).
//
//   nothing → unknown → unsaved → saved
//      ↑         │          │
//      └─────────┴── unwanted    made, but refused by the server, outrun, or not what was asked for

import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { ProvisionRequest } from './provisioner.ts'

export type Stage =
  /** The storage holds nothing: it was never asked, or said so. */
  | { readonly is: 'nothing' }
  /** It may hold something. Without a request, an earlier process asked. */
  | { readonly is: 'unknown'; readonly request?: ProvisionRequest }
  /** It made this, and the server does not know yet. */
  | {
      readonly is: 'unsaved'
      readonly volume: PersistentVolume
      readonly tries: number
      /** How many of the tries the server refused. */
      readonly refusals: number
      readonly notBeforeMs: number
    }
  /** It made this, and it has to go again. */
  | {
      readonly is: 'unwanted'
      readonly volume: PersistentVolume
      readonly because: string
      readonly tries: number
      readonly notBeforeMs: number
    }
  /** The server knows, as of this version. Matters until the cache shows it. */
  | { readonly is: 'saved'; readonly resourceVersion: string }

export interface Attempt {
  /** As last seen; outlives the object. */
  claim: Claim
  stage: Stage
  /** When the storage was last asked, by the monotonic clock. */
  startedMs: number
  /** The same request will fail again: not before then, unless the class is another one. */
  infeasible: { readonly untilMs: number; readonly classUid: string; readonly because: string } | undefined
}

/**
 * Bounded by the claims that ask this provisioner for a volume, and those whose storage is still being asked about
 * after they went: each leaves when its work is over.
 */
export class Attempts {
  readonly #byKey = new Map<ObjectKey, Map<string, Attempt>>()

  of(claim: Claim): Attempt | undefined {
    return this.at(keyOfObject(claim), claim.metadata.uid ?? '')
  }

  at(key: ObjectKey, uid: string): Attempt | undefined {
    return this.#byKey.get(key)?.get(uid)
  }

  /** Whether anything was begun for a claim of that name, there or gone. */
  knows(key: ObjectKey): boolean {
    return this.#byKey.has(key)
  }

  begin(claim: Claim, stage: Stage): Attempt {
    const known = this.of(claim)
    if (known) {
      known.claim = claim
      return known
    }
    const attempt: Attempt = { claim, stage, startedMs: 0, infeasible: undefined }
    const key = keyOfObject(claim)
    const sameName = this.#byKey.get(key) ?? new Map<string, Attempt>()
    this.#byKey.set(key, sameName.set(claim.metadata.uid ?? '', attempt))
    return attempt
  }

  forget(claim: Claim): void {
    const key = keyOfObject(claim)
    const sameName = this.#byKey.get(key)
    sameName?.delete(claim.metadata.uid ?? '')
    if (sameName?.size === 0) this.#byKey.delete(key)
  }

  /** Those begun for claims of this name that are no longer there. */
  lost(key: ObjectKey, presentUid: string | undefined): Attempt[] {
    const sameName = this.#byKey.get(key)
    return sameName ? [...sameName.values()].filter(({ claim }) => claim.metadata.uid !== presentUid) : []
  }

  get size(): number {
    let size = 0
    for (const sameName of this.#byKey.values()) size += sameName.size
    return size
  }
}

export const mayExist = ({ is }: Stage): boolean => is === 'unknown' || is === 'unsaved' || is === 'unwanted'
