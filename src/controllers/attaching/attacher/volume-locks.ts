// A lock per volume: prevents two operations on one volume from running at once. `release` returns the keys of the
// operations that found the volume locked, and the caller requeues them.

/** Holds at most one lock per worker, plus the keys of operations that wait for a locked volume. */
export class VolumeLocks {
  readonly #waitingKeys = new Map<string, Set<string>>()

  /** Returns false if the volume is locked. `release` then returns this key. */
  tryLock(volume: string, key: string): boolean {
    const waitingKeys = this.#waitingKeys.get(volume)
    if (!waitingKeys) {
      this.#waitingKeys.set(volume, new Set())
      return true
    }
    waitingKeys.add(key)
    return false
  }

  /** Returns the keys that tried to lock the volume while it was locked. */
  release(volume: string): readonly string[] {
    const waitingKeys = this.#waitingKeys.get(volume) ?? []
    this.#waitingKeys.delete(volume)
    return [...waitingKeys]
  }
}
