// Remembers for a while on which nodes volumes could not be made, by claim and by pod, so that the pod goes elsewhere
// first; by pod as well since claims of its own may be given back, and made anew under another uid.
import type { Clock } from '../../../base/clock.ts'

const REMEMBERED_MS = 300_000
const OBJECTS_MAX = 20_000 // beyond this the one that failed longest ago is forgotten, and may be tried there again

export class FailedPlaces {
  readonly #clock: Clock
  readonly #untilMs = new Map<string, Map<string, number>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  note(uid: string, nodeName: string): void {
    const places = this.#untilMs.get(uid) ?? new Map<string, number>()
    places.set(nodeName, this.#clock.monotonicMs() + REMEMBERED_MS)
    this.#untilMs.delete(uid)
    this.#untilMs.set(uid, places)
    if (this.#untilMs.size > OBJECTS_MAX) this.#untilMs.delete(this.#untilMs.keys().next().value!)
  }

  /** Nodes to avoid for these; undefined when there are none. */
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
