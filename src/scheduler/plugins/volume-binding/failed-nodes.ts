// Records the nodes on which provisioning failed, so that the pod avoids them for some time. Failures are recorded for the
// claim and for the pod, because the claim of an ephemeral volume may be recreated with another UID.
import type { Clock } from '../../../base/clock.ts'

const TTL_MS = 300_000
const OBJECTS_MAX = 20_000 // beyond this the object with the oldest failure is dropped, and its nodes may be tried again

export class FailedNodes {
  readonly #clock: Clock
  readonly #expiryByUid = new Map<string, Map<string, number>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(uid: string, nodeName: string): void {
    const nodes = this.#expiryByUid.get(uid) ?? new Map<string, number>()
    nodes.set(nodeName, this.#clock.monotonicMs() + TTL_MS)
    this.#expiryByUid.delete(uid)
    this.#expiryByUid.set(uid, nodes)
    if (this.#expiryByUid.size > OBJECTS_MAX) this.#expiryByUid.delete(this.#expiryByUid.keys().next().value!)
  }

  /** Returns the nodes on which provisioning for one of these objects failed, or undefined if there are none. */
  nodesOf(uids: readonly string[]): ReadonlySet<string> | undefined {
    if (this.#expiryByUid.size === 0) return undefined
    const nowMs = this.#clock.monotonicMs()
    const nodes = new Set<string>()
    for (const uid of uids) {
      for (const [node, expiresAtMs] of this.#expiryByUid.get(uid) ?? []) if (expiresAtMs > nowMs) nodes.add(node)
    }
    return nodes.size > 0 ? nodes : undefined
  }
}
