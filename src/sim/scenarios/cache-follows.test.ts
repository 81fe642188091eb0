// A failure prints its seed: SIM_SEED=n npx vitest run src/sim/scenarios replays it alone, step for step.
import { describe, expect, it } from 'vitest'
import { cacheFollows } from './cache-follows.ts'

const SEEDS = Number(process.env.SIM_SEEDS ?? 1_000)
const only = process.env.SIM_SEED

describe('a watched cache in a bad world', () => {
  it(`SYS-14 equals the server's list after hours of faults (${only ? `seed ${only}` : `${SEEDS} seeds`})`, async () => {
    const total = { writes: 0, refused: 0, crashes: 0, relists: 0, steps: 0, virtualHours: 0 }
    const seeds = only ? [Number(only)] : Array.from({ length: SEEDS }, (_, index) => index + 1)
    for (const seed of seeds) {
      const { world, writes, refused, crashes, relists } = await cacheFollows(seed)
      total.writes += writes
      total.refused += refused
      total.crashes += crashes
      total.relists += relists
      total.steps += world.steps
      total.virtualHours += world.nowMs / 3_600_000
    }
    console.log(`cache in a bad world: ${seeds.length} seeds, ${JSON.stringify(total)}`)
    expect(total.writes).toBeGreaterThan(seeds.length * 10)
    expect(total.crashes).toBeGreaterThan(seeds.length / 2)
  }, 900_000)

  it('SYS-14 the same seed gives the same run, event for event', async () => {
    for (const seed of [7, 8, 9]) {
      const [first, second] = [await cacheFollows(seed), await cacheFollows(seed)]
      expect(second.world.fingerprint).toBe(first.world.fingerprint)
      expect(second.world.steps).toBe(first.world.steps)
    }
  })
})
