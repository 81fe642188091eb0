// KeyLocks: locks on the keys that transactions of this process are writing, with a FIFO queue of waiters for each key.
// A waiter holds no locks, so there is no deadlock. Waiters run synchronously inside release(), so that a new transaction
// cannot acquire the lock before them.

interface Lock {
  isHeld: boolean
  waiting: (() => void)[]
  /** Index of the next waiter; earlier ones have run. */
  next: number
}

export class KeyLocks {
  /** The locks of all keys that are held or waited for. */
  readonly #locks = new Map<string, Lock>()

  isHeld(key: string): boolean {
    return this.#locks.get(key)?.isHeld === true
  }

  /** Locks the keys. None of them may be held. */
  hold(keys: readonly string[]): void {
    for (const key of keys) {
      const lock = this.#locks.get(key)
      if (lock) lock.isHeld = true
      else this.#locks.set(key, { isHeld: true, waiting: [], next: 0 })
    }
  }

  /** Queues `run` to be called when the key is released. The key must be held. */
  wait(key: string, run: () => void): void {
    this.#locks.get(key)?.waiting.push(run)
  }

  release(keys: readonly string[]): void {
    const released = keys.map((key) => ({ key, lock: this.#locks.get(key) }))
    for (const { lock } of released) if (lock) lock.isHeld = false
    for (const { key, lock } of released) if (lock) this.#wakeWaiters(key, lock)
  }

  #wakeWaiters(key: string, lock: Lock): void {
    while (!lock.isHeld && lock.next < lock.waiting.length) lock.waiting[lock.next++]?.()
    if (!lock.isHeld) this.#locks.delete(key)
    else if (lock.next > 1_000 && lock.next > lock.waiting.length / 2) {
      lock.waiting = lock.waiting.slice(lock.next)
      lock.next = 0
    }
  }
}
