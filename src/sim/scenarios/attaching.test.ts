// A failure prints its seed: SIM_SEED=n npx vitest run src/sim/scenarios/attaching replays it alone, step for step.
import { describe, expect, it } from 'vitest'
import { attaching } from './attaching.ts'

const SEEDS = Number(process.env.SIM_SEEDS ?? 50)
const only = process.env.SIM_SEED

describe('attaching in a bad world', () => {
  it(`SYS-18 no volume of one node is ever published on two, and none is forgotten (${only ? `seed ${only}` : `${SEEDS} seeds`})`, async () => {
    const total = { effects: 0, crashes: 0, publishes: 0, powerCuts: 0, virtualHours: 0 }
    const seeds = only ? [Number(only)] : Array.from({ length: SEEDS }, (_, index) => index + 1)
    for (const seed of seeds) {
      const { world, effects, crashes, publishes, powerCuts } = await attaching(seed)
      total.effects += effects
      total.crashes += crashes
      total.publishes += publishes
      total.powerCuts += powerCuts
      total.virtualHours += world.nowMs / 3_600_000
    }
    console.log(`attaching in a bad world: ${seeds.length} seeds, ${JSON.stringify(total)}`)
    expect(total.publishes).toBeGreaterThan(seeds.length * 5)
    expect(total.crashes).toBeGreaterThan(seeds.length)
  }, 900_000)

  it('SYS-18 the same seed gives the same run, step for step', async () => {
    const [first, second] = [await attaching(7), await attaching(7)]
    expect(second.world.fingerprint).toBe(first.world.fingerprint)
  })
})
