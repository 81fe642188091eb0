// The whole cluster in a bad world: some seeds that are always the same, and fresh ones for as long as SIM_WHOLE_SECONDS
// says. A failure is shrunk and told as a timeline; `npm run sim -- --seed N` replays it, and SIM_SEED=N here.
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { addResult, countOf, createTotals, resultOf, type Totals } from '../command/report.ts'
import { shrink } from '../plan/shrink.ts'
import { timelineOf } from '../trace/timeline.ts'
import { generatePlan } from '../workload/generate.ts'
import { runPlan } from './run.ts'
import { safely, twice } from './run-safely.ts'

const only = process.env.SIM_SEED
const SECONDS = Number(process.env.SIM_WHOLE_SECONDS ?? (process.env.CI ? 110 : 20))
const ALWAYS = only ? [Number(only)] : [1, 2, 3]
const TWICE = [4, 5]
const SHRINK_BUDGET = { runs: 200, ms: 60_000 }
const SLACK_MS = 600_000 // a seed that was begun is run to its end, and shrunk if it fails
/** Of each seed, as generatePlan promises. */
const LEAST = { virtualMs: 3_600_000, operations: 200, faults: 20 }

const clock = systemClock()

describe('the whole cluster in a bad world', () => {
  it(
    `SYS-14 whatever users do and whatever breaks, all that must hold holds (seeds ${ALWAYS.join(', ')})`,
    async () => {
      const totals = createTotals()
      for (const seed of ALWAYS) await holds(seed, totals)
      if (!only) expectEnough(totals)
    },
    SLACK_MS,
  )

  it.skipIf(only !== undefined)(
    `SYS-14 and so it does for seeds that nobody has seen before (${SECONDS} s of them)`,
    async () => {
      const first = Math.floor(clock.nowMs() / 1000) % 1_000_000_000
      const endMs = clock.monotonicMs() + SECONDS * 1000
      const totals = createTotals()
      for (let seed = first; clock.monotonicMs() < endMs; seed++) await holds(seed, totals)
      const { seeds, virtualMs, failures } = totals
      console.log(
        `the whole cluster in a bad world: ${seeds} fresh seeds from ${first}, ${(virtualMs / 3_600_000).toFixed(1)} virtual hours, ` +
          `${countOf.operations(totals)} operations, ${countOf.faults(totals)} faults, ${failures.length} violations`,
      )
      if (seeds > 0) expectEnough(totals)
    },
    SECONDS * 1000 + SLACK_MS,
  )

  it.skipIf(only !== undefined)(
    `SYS-14 the same seed gives the same run, line for line (seeds ${TWICE.join(', ')})`,
    async () => {
      for (const seed of TWICE) {
        const { violations } = await safely(twice(runPlan))(generatePlan(seed))
        expect(violations.filter(({ rule }) => rule === 'same seed, same run')).toEqual([])
      }
    },
    SLACK_MS,
  )
})

async function holds(seed: number, totals: Totals): Promise<void> {
  const plan = generatePlan(seed)
  const run = await safely(runPlan)(plan)
  addResult(totals, resultOf(seed, run))
  if (run.violations.length === 0) return
  const shrunk = await shrink(plan, safely(runPlan), { budget: SHRINK_BUDGET, clock })
  throw new Error(`Seed ${seed} has a violation. npm run sim -- --seed ${seed}\n${timelineOf(shrunk?.run ?? run)}`)
}

function expectEnough({ least }: Totals): void {
  for (const part of ['virtualMs', 'operations', 'faults'] as const)
    expect(least[part], part).toBeGreaterThanOrEqual(LEAST[part])
}
