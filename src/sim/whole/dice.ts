// Chance in the words that plans are made with.
import type { Random } from '../../base/clock.ts'

export interface Dice {
  /** A whole number from 0, less than `sides`. */
  roll(sides: number): number
  /** A whole number, both ends included. */
  between(least: number, most: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** One of several, each as often as its weight says. */
  weighted<T>(rows: readonly (readonly [weight: number, value: T])[]): T
  /** In [0, 1). */
  fraction(): number
}

export function diceOf(random: Random): Dice {
  const roll = (sides: number) => Math.floor(random() * sides)
  return {
    roll,
    between: (least, most) => least + roll(most - least + 1),
    chance: (probability) => random() < probability,
    pick: <T>(from: readonly T[]) => from[roll(from.length)] as T,
    weighted<T>(rows: readonly (readonly [number, T])[]) {
      let left = random() * rows.reduce((sum, [weight]) => sum + weight, 0)
      for (const [weight, value] of rows) {
        left -= weight
        if (left < 0) return value
      }
      return rows.at(-1)![1]
    },
    fraction: random,
  }
}
