// Stores when the toleration of each pod on a tainted node started, on the monotonic clock, and when all nodes were last
// lost. If no node reports, this process is probably disconnected: evictions are suspended, and all tolerations start
// again when the first node reports. Bounded by the number of pods on tainted nodes.

export class TolerationTimes {
  readonly #starts = new Map<string, { readonly uid: string | undefined; readonly startMs: number }>()
  #allLostUntilMs = Number.NEGATIVE_INFINITY

  /** Returns the time at which the pod's toleration started: now, unless it has started already. */
  begin(key: string, uid: string | undefined, nowMs: number): number {
    let start = this.#starts.get(key)
    if (!start || start.uid !== uid) {
      start = { uid, startMs: nowMs }
      this.#starts.set(key, start)
    }
    return Math.max(start.startMs, this.#allLostUntilMs)
  }

  has(key: string): boolean {
    return this.#starts.has(key)
  }

  /** Removes the entry of the pod. Returns whether there was one. */
  end(key: string): boolean {
    return this.#starts.delete(key)
  }

  setAllLostUntil(ms: number): void {
    this.#allLostUntilMs = Math.max(this.#allLostUntilMs, ms)
  }
}
