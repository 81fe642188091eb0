// Keys that a transaction of this process is about to write, and who waits for them, first come first served.
// Whoever waits holds nothing, so nobody can wait in a circle. Callbacks run within release(): no turn of the event
// loop lies between one holder and the next, so a newcomer never slips in between.

interface Lock {
  isHeld: boolean
  waiting: (() => void)[]
  /** Those before have had their turn. */
  next: number
}

export class KeyLocks {
  /** Every key that is held or waited for. */
  readonly #locks = new Map<string, Lock>()

  isHeld(key: string): boolean {
    return this.#locks.get(key)?.isHeld === true
  }

  /** None of them may be held. */
  hold(keys: readonly string[]): void {
    for (const key of keys) {
      const lock = this.#locks.get(key)
      if (lock) lock.isHeld = true
      else this.#locks.set(key, { isHeld: true, waiting: [], next: 0 })
    }
  }

  /** Calls `run` once the key is free and it is its turn. The key must be held. */
  wait(key: string, run: () => void): void {
    this.#locks.get(key)?.waiting.push(run)
  }

  release(keys: readonly string[]): void {
    const released = keys.map((key) => ({ key, lock: this.#locks.get(key) }))
    for (const { lock } of released) if (lock) lock.isHeld = false
    for (const { key, lock } of released) if (lock) this.#passOn(key, lock)
  }

  #passOn(key: string, lock: Lock): void {
    while (!lock.isHeld && lock.next < lock.waiting.length) lock.waiting[lock.next++]?.()
    if (!lock.isHeld) this.#locks.delete(key)
    else if (lock.next > 1_000 && lock.next > lock.waiting.length / 2) {
      lock.waiting = lock.waiting.slice(lock.next)
      lock.next = 0
    }
  }
}
