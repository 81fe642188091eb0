// A failure prints its seed: SIM_SEED=n npx vitest run src/sim/scenarios/expansion.test.ts replays it alone, step for step.
import { describe, expect, it } from 'vitest'
import { expansionInABadWorld } from './expansion.ts'

const SEEDS = Number(process.env.SIM_SEEDS ?? 100)
const FIRST = Number(process.env.SIM_FIRST_SEED ?? 1)
const only = process.env.SIM_SEED

describe('claims that grow in a bad world', () => {
  it(`SYS-14 REX-4 REX-8 PLUS-14 nothing shrinks, the quota is exact, and every claim has its size or says why not (${only ? `seed ${only}` : `${SEEDS} seeds`})`, async () => {
    const total = { acts: 0, effects: 0, crashes: 0, grown: 0, steps: 0, virtualHours: 0 }
    const seeds = only ? [Number(only)] : Array.from({ length: SEEDS }, (_, index) => index + FIRST)
    for (const seed of seeds) {
      const { world, acts, effects, crashes, grown } = await expansionInABadWorld(seed)
      total.acts += acts
      total.effects += effects
      total.crashes += crashes
      total.grown += grown
      total.steps += world.steps
      total.virtualHours += world.nowMs / 3_600_000
    }
    console.log(`growth in a bad world: ${seeds.length} seeds, ${JSON.stringify(total)}`)
    expect(total.grown).toBeGreaterThan(seeds.length * 2)
    if (!only) expect(total.crashes).toBeGreaterThan(seeds.length / 2)
  }, 1_800_000)

  it('SYS-14 the same seed gives the same run, event for event', async () => {
    for (const seed of [7, 8]) {
      const [first, second] = [await expansionInABadWorld(seed), await expansionInABadWorld(seed)]
      expect(second.world.fingerprint).toBe(first.world.fingerprint)
      expect(second.world.steps).toBe(first.world.steps)
    }
  })
})
