// Claims and volumes that pods on their way to a node have been given, from the decision until the pod is bound or has
// failed. Others must not be given the same; pods that share a claim have to follow the first.
import type { ObjectKey } from '../../../client/index.ts'

export interface Given {
  readonly nodeName: string
  readonly podKey: ObjectKey
  /** The existing volume chosen for the claim; absent when one is being made. */
  readonly volume?: string
}

export class InHand {
  readonly #claims = new Map<ObjectKey, Given>()
  readonly #volumes = new Set<string>()

  /** Names of volumes that are spoken for. */
  get volumes(): ReadonlySet<string> {
    return this.#volumes
  }

  given(claimKey: ObjectKey): Given | undefined {
    return this.#claims.get(claimKey)
  }

  give(claimKey: ObjectKey, given: Given): void {
    this.#claims.set(claimKey, given)
    if (given.volume !== undefined) this.#volumes.add(given.volume)
  }

  takeBack(claimKey: ObjectKey, podKey: ObjectKey): void {
    const given = this.#claims.get(claimKey)
    if (given?.podKey !== podKey) return
    this.#claims.delete(claimKey)
    if (given.volume !== undefined) this.#volumes.delete(given.volume)
  }
}
