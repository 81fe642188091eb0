// Remembers for a while on which nodes provisioning failed, so that the pod avoids them. By claim, and by pod as well:
// claims of an ephemeral volume may be deleted and created again with another uid.
import type { Clock } from '../../../base/clock.ts'

const REMEMBERED_MS = 300_000
const OBJECTS_MAX = 20_000 // beyond this the oldest failure is forgotten and its node may be tried again

export class FailedNodes {
  readonly #clock: Clock
  readonly #untilMs = new Map<string, Map<string, number>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(uid: string, nodeName: string): void {
    const nodes = this.#untilMs.get(uid) ?? new Map<string, number>()
    nodes.set(nodeName, this.#clock.monotonicMs() + REMEMBERED_MS)
    this.#untilMs.delete(uid)
    this.#untilMs.set(uid, nodes)
    if (this.#untilMs.size > OBJECTS_MAX) this.#untilMs.delete(this.#untilMs.keys().next().value!)
  }

  /** Nodes on which provisioning for one of these objects failed; undefined if there are none. */
  of(uids: readonly string[]): ReadonlySet<string> | undefined {
    if (this.#untilMs.size === 0) return undefined
    const nowMs = this.#clock.monotonicMs()
    const nodes = new Set<string>()
    for (const uid of uids) {
      for (const [node, untilMs] of this.#untilMs.get(uid) ?? []) if (untilMs > nowMs) nodes.add(node)
    }
    return nodes.size > 0 ? nodes : undefined
  }
}
