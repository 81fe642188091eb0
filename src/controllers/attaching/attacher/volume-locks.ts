// A lock per volume, so that no two operations of one volume run at once. `release` returns the operations that found
// the volume locked, so that the caller can requeue them.

/** Bounded by the number of workers and of operations that wait for their volumes. */
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
