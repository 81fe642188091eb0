// A failure prints its seed: SIM_SEED=n npx vitest run src/sim/scenarios/claims replays it alone, step for step.
import { describe, expect, it } from 'vitest'
import { claimsBecomeVolumes } from './claims-become-volumes.ts'

const SEEDS = Number(process.env.SIM_SEEDS ?? 1_000)
const only = process.env.SIM_SEED

describe('claims that become volumes in a bad world', () => {
  it(`SYS-14 PROV-5 PROV-12 PROV-13 PROV-14 PROV-15 no volume is bound twice, none leaks, none is destroyed that should stay, and every claim is bound or says why not (${only ? `seed ${only}` : `${SEEDS} seeds`})`, async () => {
    const total = { acts: 0, effects: 0, crashes: 0, made: 0, steps: 0, virtualHours: 0 }
    const seeds = only ? [Number(only)] : Array.from({ length: SEEDS }, (_, index) => index + 1)
    for (const seed of seeds) {
      const { world, acts, effects, crashes, made } = await claimsBecomeVolumes(seed)
      total.acts += acts
      total.effects += effects
      total.crashes += crashes
      total.made += made
      total.steps += world.steps
      total.virtualHours += world.nowMs / 3_600_000
    }
    console.log(`claims in a bad world: ${seeds.length} seeds, ${JSON.stringify(total)}`)
    expect(total.made).toBeGreaterThan(seeds.length * 2)
    expect(total.crashes).toBeGreaterThan(seeds.length / 2)
  }, 900_000)

  it('SYS-14 the same seed gives the same run, event for event', async () => {
    for (const seed of [7, 8, 9]) {
      const [first, second] = [await claimsBecomeVolumes(seed), await claimsBecomeVolumes(seed)]
      expect(second.world.fingerprint).toBe(first.world.fingerprint)
      expect(second.world.steps).toBe(first.world.steps)
    }
  })
})
