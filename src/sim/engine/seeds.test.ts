// Runs the whole system on fixed seeds of every workload. Fresh seeds are run by `npm run sim` and `npm run prove`.
// A failure is shrunk and printed as a timeline with the command that replays it.
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { addResult, createTotals, type Totals, toSeedResult } from '../command/report.ts'
import { shrink } from '../plan/shrink-plan.ts'
import { formatTimeline } from '../trace/timeline.ts'
import { generatePlan, type PlanOptions } from '../workload/generate-plan.ts'
import { WORKLOAD_NAMES, type WorkloadName } from '../workload/workloads.ts'
import { runPlan } from './run-plan.ts'
import { catchCrashes, compareTwoRuns } from './run-wrappers.ts'

const SEEDS: Readonly<Record<WorkloadName, readonly number[]>> = {
  mixed: [1, 2, 3, 305, 869, 3765, 4267, 4446, 10195, 10237, 40061, 40603],
  provisioning: [1, 2, 3, 4, 269],
  expansion: [1, 2, 3, 4],
  modification: [1, 2, 3, 4, 28],
  attaching: [1, 2, 3],
  scheduling: [1, 2, 3],
  quota: [1, 2, 3, 910023],
  cache: [1, 2],
  contention: [1, 2, 3, 4, 910008],
  placement: [1, 2, 3, 4],
  'stateful-sets': [1, 2, 3],
  'lost-nodes': [1, 2, 2108],
  priority: [1, 2],
  'auto-grow': [1, 2, 3, 2007],
}
/** Seeds that run on a server with a stock API server's responses. */
const STOCK_SEEDS: readonly (readonly [WorkloadName, number])[] = [
  ['mixed', 1],
  ['mixed', 2],
  ['provisioning', 4],
  ['modification', 1],
  ['attaching', 1],
  ['scheduling', 1],
  ['stateful-sets', 1],
]
const SEEDS_RUN_TWICE: readonly (readonly [WorkloadName, number, PlanOptions['answers']?])[] = [
  ['mixed', 4],
  ['quota', 7],
  ['expansion', 1, 'stock'],
]
const SHRINK_BUDGET = { runs: 200, ms: 60_000 }
const TIMEOUT_MS = 900_000
/** The minimum figures of every plan of the mixed workload. */
const MINIMUM = { virtualMs: 3_600_000, operations: 200, faults: 20 }

const clock = systemClock()

describe('the whole system', () => {
  for (const workload of WORKLOAD_NAMES)
    it(
      `SYS-14 violates no rule in the workload ${workload} (seeds ${SEEDS[workload].join(', ')})`,
      async () => {
        const totals = createTotals()
        for (const seed of SEEDS[workload]) await expectNoViolation(workload, seed, totals)
        if (workload !== 'mixed') return
        for (const figure of ['virtualMs', 'operations', 'faults'] as const)
          expect(totals.minimum[figure], figure).toBeGreaterThanOrEqual(MINIMUM[figure])
      },
      TIMEOUT_MS,
    )

  it(
    `SYS-29 violates no rule on a stock API server (${STOCK_SEEDS.map((seed) => seed.join(' ')).join(', ')})`,
    async () => {
      const totals = createTotals()
      for (const [workload, seed] of STOCK_SEEDS) await expectNoViolation(workload, seed, totals, 'stock')
      for (const fault of ['answered 403', 'answered 429', 'right denied', 'kind not served'])
        expect(totals.faults[fault], fault).toBeGreaterThan(0)
    },
    TIMEOUT_MS,
  )

  it(
    'SYS-14 gives the same trace for the same seed',
    async () => {
      for (const [workload, seed, answers] of SEEDS_RUN_TWICE) {
        const { violations } = await catchCrashes(compareTwoRuns(runPlan))(generatePlan(seed, { workload, answers }))
        expect(violations).toEqual([])
      }
    },
    TIMEOUT_MS,
  )
})

async function expectNoViolation(
  workload: WorkloadName,
  seed: number,
  totals: Totals,
  answers?: PlanOptions['answers'],
): Promise<void> {
  const plan = generatePlan(seed, { workload, answers })
  const run = await catchCrashes(runPlan)(plan)
  addResult(totals, toSeedResult(seed, run))
  if (run.violations.length === 0) return
  const shrunk = await shrink(plan, catchCrashes(runPlan), { budget: SHRINK_BUDGET, clock })
  const workloadFlag = workload === 'mixed' ? '' : ` --workload ${workload}`
  const flags = `--seed ${seed}${workloadFlag}${answers ? ` --answers ${answers}` : ''}`
  throw new Error(`Seed ${seed} has a violation. npm run sim -- ${flags}\n${formatTimeline(shrunk?.run ?? run)}`)
}
