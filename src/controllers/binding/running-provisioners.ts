// The provisioners whose controllers run in the process of the binder. For them, the binder records the name of the provisioner
// and the intent to create a volume (../provisioning/intent.ts) in one write, which saves a write per claim, and records no
// ExternalProvisioning event. Other provisioners write the intent themselves.
import type { Claim } from '../../volumes/matching.ts'

export interface RunningProvisioner {
  readonly name: string
  /** The node if each node runs its own instance of the provisioner. */
  readonly instance?: string | undefined
  /** The finalizer that records the intent. */
  readonly intentFinalizer: string
  /** Called before the binder writes the finalizer: no volume exists yet, although the claim will have the finalizer. */
  expectIntent(claim: Claim): void
  /** Called if the write failed or its result is unknown. */
  forgetIntent(claim: Claim): void
}

export class RunningProvisioners {
  readonly #byKey = new Map<string, RunningProvisioner>()

  /** Returns a function that removes the provisioner. */
  add(provisioner: RunningProvisioner): () => void {
    const key = keyOf(provisioner.name, provisioner.instance)
    this.#byKey.set(key, provisioner)
    return () => {
      if (this.#byKey.get(key) === provisioner) this.#byKey.delete(key)
    }
  }

  /** Returns the provisioner for all nodes, or the instance of the selected node. */
  find(name: string, selectedNode: string | undefined): RunningProvisioner | undefined {
    const instance = selectedNode === undefined ? undefined : this.#byKey.get(keyOf(name, selectedNode))
    return instance ?? this.#byKey.get(keyOf(name, undefined))
  }
}

/** A slash occurs in neither of the names. */
const keyOf = (name: string, instance: string | undefined): string => `${name}/${instance ?? ''}`
