// Random choices for generators, all from one seeded source, so that a seed replays a whole run.
import { seededRandom } from '../helpers/random.ts'

export interface Dice {
  /** An integer in [0, below). */
  int(below: number): number
  /** True once in `n` times. */
  oneIn(n: number): boolean
  pick<T>(items: readonly T[]): T
  /** A few of the items, possibly none, in their order. */
  some<T>(items: readonly T[]): T[]
  /** The value, or nothing half of the time: `{ ...dice.maybe({ spec }) }`. */
  maybe<T extends object>(value: T): Partial<T>
}

export function createDice(seed: number): Dice {
  const random = seededRandom(seed)
  const int = (below: number) => Math.floor(random() * below)
  return {
    int,
    oneIn: (n) => int(n) === 0,
    pick: (items) => items[int(items.length)]!,
    some: (items) => items.filter(() => random() < 0.4),
    maybe: (value) => (random() < 0.5 ? value : {}),
  }
}
