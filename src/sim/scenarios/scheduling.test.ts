// A failure prints its seed: SIM_SEED=n npx vitest run src/sim/scenarios/scheduling.test.ts replays it alone.
import { describe, expect, it } from 'vitest'
import { podsFindVolumes } from './scheduling.ts'

const SEEDS = Number(process.env.SIM_SEEDS ?? 400)
const SEED_MS_MAX = 1_000 // on a machine that does much else
const only = process.env.SIM_SEED

describe('pods with local volumes in a bad world', () => {
  it(
    `SYS-14 CAP-12 CAP-13 CAP-16 CAP-17 no pool is over-full, no volume leaks, every pod is with its volumes or says why it waits, and unrelated changes cause no attempt (${only ? `seed ${only}` : `${SEEDS} seeds`})`,
    async () => {
      const total = { acts: 0, crashes: 0, placed: 0, waiting: 0, made: 0, steps: 0, virtualHours: 0 }
      const seeds = only ? [Number(only)] : Array.from({ length: SEEDS }, (_, index) => index + 1)
      for (const seed of seeds) {
        const { world, acts, crashes, placed, waiting, made } = await podsFindVolumes(seed)
        total.acts += acts
        total.crashes += crashes
        total.placed += placed
        total.waiting += waiting
        total.made += made
        total.steps += world.steps
        total.virtualHours += world.nowMs / 3_600_000
      }
      console.log(`pods in a bad world: ${seeds.length} seeds, ${JSON.stringify(total)}`)
      expect(total.placed).toBeGreaterThan(seeds.length)
      expect(total.made).toBeGreaterThan(seeds.length)
      expect(total.crashes).toBeGreaterThan(seeds.length)
    },
    SEEDS * SEED_MS_MAX,
  )

  it('SYS-14 the same seed gives the same run, event for event', async () => {
    for (const seed of [7, 8, 9]) {
      const [first, second] = [await podsFindVolumes(seed), await podsFindVolumes(seed)]
      expect(second.world.fingerprint).toBe(first.world.fingerprint)
      expect(second.world.steps).toBe(first.world.steps)
    }
  })
})
