// Random streams that a seed determines, for the simulator and the verification of drivers.
import type { Random } from './clock.ts'

/** Creates a deterministic random stream (mulberry32). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Derives the seed of one purpose, so that a further draw for one purpose does not change the others. */
export const mixSeed = (seed: number, purpose: string): number => hashText(purpose, seed ^ 0x9e3779b9)

export function hashText(text: string, start: number): number {
  let value = start >>> 0
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0
  return value
}
