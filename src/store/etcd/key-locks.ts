// KeyLocks: locks on the keys that transactions of this process are writing, with a FIFO queue of waiters for each key.
// A waiter holds no locks, so there is no deadlock. Waiters run synchronously inside release(), so that a new transaction
// cannot acquire the lock before them. Several of them can share the lock if its new holder allows it (chain.ts).

export interface LockHolder {
  /** Whether waiters of the key may run while this holder has it. */
  canContinue(key: string): boolean
}

interface Lock<Holder> {
  holder: Holder | undefined
  waiters: (() => void)[]
  /** Index of the next waiter; earlier ones have run. */
  nextIndex: number
}

export class KeyLocks<Holder extends LockHolder> {
  /** The locks of all keys that are held or waited for. */
  readonly #locks = new Map<string, Lock<Holder>>()

  holderOf(key: string): Holder | undefined {
    return this.#locks.get(key)?.holder
  }

  /** Locks the keys. No other holder may have one of them. */
  hold(keys: readonly string[], holder: Holder): void {
    for (const key of keys) {
      const lock = this.#locks.get(key)
      if (lock) lock.holder = holder
      else this.#locks.set(key, { holder, waiters: [], nextIndex: 0 })
    }
  }

  /** Queues `run` to be called when the key is released. The key must be held. */
  wait(key: string, run: () => void): void {
    this.#locks.get(key)?.waiters.push(run)
  }

  release(keys: readonly string[]): void {
    const releasedLocks = keys.map((key) => ({ key, lock: this.#locks.get(key) }))
    for (const { lock } of releasedLocks) if (lock) lock.holder = undefined
    for (const { key, lock } of releasedLocks) if (lock) this.#wakeWaiters(key, lock)
  }

  #wakeWaiters(key: string, lock: Lock<Holder>): void {
    const end = lock.waiters.length // a waiter that waits again runs after the next release
    while (lock.nextIndex < end && (lock.holder?.canContinue(key) ?? true)) lock.waiters[lock.nextIndex++]?.()
    if (!lock.holder) this.#locks.delete(key)
    else if (lock.nextIndex > 1_000 && lock.nextIndex > lock.waiters.length / 2) {
      lock.waiters = lock.waiters.slice(lock.nextIndex)
      lock.nextIndex = 0
    }
  }
}
