// Sets one timer per key. The controllers do not delay keys in the work queue instead, because those would count as pending.
import type { Clock } from '../../base/clock.ts'

export class Timers {
  readonly #clock: Pick<Clock, 'after'>
  readonly #cancels = new Map<string, () => void>()

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock
  }

  /** Replaces the key's timer. */
  set(key: string, ms: number, callback: () => void): void {
    this.clear(key)
    const cancel = this.#clock.after(ms, () => {
      this.#cancels.delete(key)
      callback()
    })
    this.#cancels.set(key, cancel)
  }

  clear(key: string): void {
    this.#cancels.get(key)?.()
    this.#cancels.delete(key)
  }

  clearAll(): void {
    for (const key of [...this.#cancels.keys()]) this.clear(key)
  }
}
