// Remembers for a while on which nodes a claim's volume could not be made, so that its pod goes elsewhere first.
import type { Clock } from '../../../base/clock.ts'

const REMEMBERED_MS = 300_000
const CLAIMS_MAX = 10_000 // beyond this the claim that failed longest ago is forgotten, and may be tried there again

export class FailedPlaces {
  readonly #clock: Clock
  readonly #untilMs = new Map<string, Map<string, number>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  note(claimUid: string, nodeName: string): void {
    const places = this.#untilMs.get(claimUid) ?? new Map<string, number>()
    places.set(nodeName, this.#clock.monotonicMs() + REMEMBERED_MS)
    this.#untilMs.delete(claimUid)
    this.#untilMs.set(claimUid, places)
    if (this.#untilMs.size > CLAIMS_MAX) this.#untilMs.delete(this.#untilMs.keys().next().value!)
  }

  /** Nodes to avoid for these claims; undefined when there are none. */
  of(claimUids: readonly string[]): ReadonlySet<string> | undefined {
    if (this.#untilMs.size === 0) return undefined
    const nowMs = this.#clock.monotonicMs()
    const nodes = new Set<string>()
    for (const uid of claimUids) {
      for (const [node, untilMs] of this.#untilMs.get(uid) ?? []) if (untilMs > nowMs) nodes.add(node)
    }
    return nodes.size > 0 ? nodes : undefined
  }
}
