// Since when pods tolerate the taints of their nodes, on the monotonic clock, and when all nodes were last lost at once.
// If no node reports, this process is more likely cut off from the cluster: evictions are suspended, and when the first
// node is back, all tolerations start again. At most one entry per pod on a tainted node.

export class EvictionMemory {
  readonly #since = new Map<string, { readonly uid: string | undefined; readonly ms: number }>()
  #allLostUntilMs = Number.NEGATIVE_INFINITY

  /** When the pod's toleration started: now, unless it has started already. */
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

  /** Whether there was an entry. */
  end(key: string): boolean {
    return this.#since.delete(key)
  }

  allLostUntil(ms: number): void {
    this.#allLostUntilMs = Math.max(this.#allLostUntilMs, ms)
  }
}
