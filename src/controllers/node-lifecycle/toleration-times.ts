// Stores, by the monotonic clock, the time at which the toleration of each pod on a tainted node started, and the last time at
// which no node was ready. If no node is ready, this process is probably disconnected: evictions are suspended, and all
// tolerations start again when the first node is ready. Bounded by the number of pods on tainted nodes.

export class TolerationTimes {
  readonly #starts = new Map<string, { readonly uid: string | undefined; readonly startMs: number }>()
  #allNotReadyUntilMs = Number.NEGATIVE_INFINITY

  /** Returns the time at which the pod's toleration started: now, unless it has started already. */
  begin(key: string, uid: string | undefined, nowMs: number): number {
    let start = this.#starts.get(key)
    if (!start || start.uid !== uid) {
      start = { uid, startMs: nowMs }
      this.#starts.set(key, start)
    }
    return Math.max(start.startMs, this.#allNotReadyUntilMs)
  }

  has(key: string): boolean {
    return this.#starts.has(key)
  }

  /** Removes the entry of the pod. Returns whether there was one. */
  end(key: string): boolean {
    return this.#starts.delete(key)
  }

  setAllNotReadyUntil(ms: number): void {
    this.#allNotReadyUntilMs = Math.max(this.#allNotReadyUntilMs, ms)
  }
}
