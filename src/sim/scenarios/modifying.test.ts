// A failure prints its seed: SIM_SEED=n npx vitest run src/sim/scenarios/modifying.test.ts replays it alone, step for step.
import { describe, expect, it } from 'vitest'
import { modifyingInABadWorld } from './modifying.ts'

const SEEDS = Number(process.env.SIM_SEEDS ?? 30)
const FIRST = Number(process.env.SIM_FIRST_SEED ?? 1)
const only = process.env.SIM_SEED

describe('attributes that change in a bad world', () => {
  it(`SYS-14 VAC-6 VAC-7 PIO-4 PLUS-10 the driver has what each status says, and every claim what it wants or it says why not (${only ? `seed ${only}` : `${SEEDS} seeds`})`, async () => {
    const total = { acts: 0, effects: 0, crashes: 0, settled: 0, steps: 0, virtualHours: 0 }
    const answers: Record<string, number> = {}
    const seeds = only ? [Number(only)] : Array.from({ length: SEEDS }, (_, index) => index + FIRST)
    for (const seed of seeds) {
      const run = await modifyingInABadWorld(seed)
      for (const [code, count] of Object.entries(run.answers)) answers[code] = (answers[code] ?? 0) + count
      for (const key of ['acts', 'effects', 'crashes', 'settled'] as const) total[key] += run[key]
      total.steps += run.world.steps
      total.virtualHours += run.world.nowMs / 3_600_000
    }
    console.log(`attributes in a bad world: ${seeds.length} seeds, ${JSON.stringify({ ...total, answers })}`)
    if (only) return
    expect(total.settled).toBeGreaterThan(seeds.length * 5)
    expect(total.crashes).toBeGreaterThan(seeds.length / 2)
    if (SEEDS >= 30) expect(Object.keys(answers).length).toBeGreaterThan(12) // many kinds of answers
  }, 1_800_000)

  it('SYS-14 the same seed gives the same run, event for event', async () => {
    for (const seed of [7, 8]) {
      const [first, second] = [await modifyingInABadWorld(seed), await modifyingInABadWorld(seed)]
      expect(second.world.fingerprint).toBe(first.world.fingerprint)
      expect(second.world.steps).toBe(first.world.steps)
    }
  })
})
