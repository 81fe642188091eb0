// Random choices for generators, from one seeded source, so that a seed replays a run.
import { seededRandom } from '../helpers/random.ts'

export interface Dice {
  /** Returns an integer in [0, end). */
  int(end: number): number
  /** Returns true with probability 1/n. */
  oneIn(n: number): boolean
  pick<T>(items: readonly T[]): T
  /** Returns a random subset of the items, in their order. */
  subset<T>(items: readonly T[]): T[]
  /** Returns the value or, half of the time, an empty object: `{ ...dice.maybe({ spec }) }`. */
  maybe<T extends object>(value: T): Partial<T>
}

export function createDice(seed: number): Dice {
  const random = seededRandom(seed)
  const int = (end: number) => Math.floor(random() * end)
  return {
    int,
    oneIn: (n) => int(n) === 0,
    pick: (items) => items[int(items.length)]!,
    subset: (items) => items.filter(() => random() < 0.4),
    maybe: (value) => (random() < 0.5 ? value : {}),
  }
}
