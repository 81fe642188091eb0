// One timer per key, for keys that are as they should be and only to be looked at again by then. In a work queue they
// would look like work that is not done.
import type { Clock } from '../../base/clock.ts'

export class Alarms {
  readonly #clock: Pick<Clock, 'after'>
  readonly #cancels = new Map<string, () => void>()

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock
  }

  /** In place of the one the key had. */
  set(key: string, ms: number, ring: () => void): void {
    this.clear(key)
    const cancel = this.#clock.after(ms, () => {
      this.#cancels.delete(key)
      ring()
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
