// Tracks the claims and volumes that are assumed bound, from reserve until the pod is bound or the attempt has failed. Other
// pods must not use the same volumes, and pods that share a claim must run on the node that was selected for it.
import type { ObjectKey } from '../../../client/index.ts'

export interface AssumedBinding {
  readonly nodeName: string
  readonly podKey: ObjectKey
  /** The existing volume chosen for the claim. Undefined if a volume is to be provisioned. */
  readonly volume?: string
}

export class AssumedVolumes {
  readonly #claims = new Map<ObjectKey, AssumedBinding>()
  readonly #volumes = new Set<string>()

  /** The names of the volumes that are assumed bound. */
  get volumes(): ReadonlySet<string> {
    return this.#volumes
  }

  bindingOf(claimKey: ObjectKey): AssumedBinding | undefined {
    return this.#claims.get(claimKey)
  }

  assume(claimKey: ObjectKey, binding: AssumedBinding): void {
    this.#claims.set(claimKey, binding)
    if (binding.volume !== undefined) this.#volumes.add(binding.volume)
  }

  forget(claimKey: ObjectKey, podKey: ObjectKey): void {
    const binding = this.#claims.get(claimKey)
    if (binding?.podKey !== podKey) return
    this.#claims.delete(claimKey)
    if (binding.volume !== undefined) this.#volumes.delete(binding.volume)
  }
}
