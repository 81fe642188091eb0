// Since when pods bear the taints of their nodes, by the monotonic clock; and when all nodes were last lost at once.
// A cluster in which no node answers is more likely one that we are cut off from, and its pods have nowhere to go: nothing
// is evicted then, and when the first node is back the others get their whole time again.
// At most one entry per pod on a tainted node.

export class EvictionMemory {
  readonly #since = new Map<string, { readonly uid: string | undefined; readonly ms: number }>()
  #allLostUntilMs = Number.NEGATIVE_INFINITY

  /** When the pod's time began: now, unless it has begun already. */
  begin(key: string, uid: string | undefined, nowMs: number): number {
    let begun = this.#since.get(key)
    if (!begun || begun.uid !== uid) {
      begun = { uid, ms: nowMs }
      this.#since.set(key, begun)
    }
    return Math.max(begun.ms, this.#allLostUntilMs)
  }

  has(key: string): boolean {
    return this.#since.has(key)
  }

  /** Whether it was there. */
  end(key: string): boolean {
    return this.#since.delete(key)
  }

  allLostUntil(ms: number): void {
    this.#allLostUntilMs = Math.max(this.#allLostUntilMs, ms)
  }
}
