// A lock per volume: no two operations of one volume run at once. An operation that finds the volume locked is returned
// by `release`, so that the caller can requeue it.

/** Bounded by the workers and the operations that wait for their volumes. */
export class VolumeLocks {
  readonly #waiting = new Map<string, Set<string>>()

  /** False: locked; `release` returns this key. */
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
