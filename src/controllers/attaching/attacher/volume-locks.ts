// A lock per volume, so that no two operations of one volume run at once. `release` returns the operations that found
// the volume locked, so that the caller can requeue them.

/** Bounded by the number of workers and of operations that wait for their volumes. */
export class VolumeLocks {
  readonly #waiting = new Map<string, Set<string>>()

  /** Returns false if the volume is locked. `release` then returns this key. */
  tryLock(volume: string, key: string): boolean {
    const waiting = this.#waiting.get(volume)
    if (!waiting) {
      this.#waiting.set(volume, new Set())
      return true
    }
    waiting.add(key)
    return false
  }

  /** Returns the keys that tried to lock the volume while it was locked. */
  release(volume: string): readonly string[] {
    const waiting = this.#waiting.get(volume) ?? []
    this.#waiting.delete(volume)
    return [...waiting]
  }
}
