// A random stream with the operations that plan generation needs. Pure, given the stream.
import type { Random } from '../../base/clock.ts'

export interface Rng {
  /** Returns an integer from 0 to `bound` - 1. */
  below(bound: number): number
  /** Returns an integer from `min` to `max`, both included. */
  between(min: number, max: number): number
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T
  /** Returns one of the values, with a probability proportional to its weight. */
  pickWeighted<T>(rows: readonly (readonly [weight: number, value: T])[]): T
  /** Returns a number in [0, 1). */
  fraction(): number
}

export function createRng(random: Random): Rng {
  const below = (bound: number) => Math.floor(random() * bound)
  return {
    below,
    between: (min, max) => min + below(max - min + 1),
    chance: (probability) => random() < probability,
    pick: <T>(items: readonly T[]) => items[below(items.length)] as T,
    pickWeighted<T>(rows: readonly (readonly [number, T])[]) {
      let remainingWeight = random() * rows.reduce((sum, [weight]) => sum + weight, 0)
      for (const [weight, value] of rows) {
        remainingWeight -= weight
        if (remainingWeight < 0) return value
      }
      return rows.at(-1)![1]
    },
    fraction: random,
  }
}
