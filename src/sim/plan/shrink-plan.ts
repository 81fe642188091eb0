// Shrinks a failing plan: removes steps as long as a violation of the same rule remains, then fault rates, then simplifies
// setup, times and values (simpler-plans.ts). Candidates are run within a budget of runs and time.
import type { Clock } from '../../base/clock.ts'
import type { SimulationRun } from '../engine/run-plan.ts'
import type { Plan } from './plan.ts'
import { type Simplifier, simplerFaultRates, simplerSetups, simplerTimes, simplerValues } from './simpler-plans.ts'

export type RunPlan = (plan: Plan) => Promise<SimulationRun>

export interface ShrinkBudget {
  readonly runs: number
  readonly ms: number
}

export interface ShrinkOptions {
  readonly budget: ShrinkBudget
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Called after each run that reduced the plan. */
  readonly progress?: (plan: Plan, runs: number) => void
}

export interface ShrinkResult {
  readonly plan: Plan
  /** The run of the shrunk plan. */
  readonly run: SimulationRun
  readonly rule: string
  readonly runs: number
  /** Whether the search ended before the budget was used up. */
  readonly isComplete: boolean
}

/** Shrinks a plan. Returns undefined if its run has no violation. */
export async function shrink(plan: Plan, run: RunPlan, options: ShrinkOptions): Promise<ShrinkResult | undefined> {
  const firstRun = await run(plan)
  const violation = firstRun.violations[0]
  if (!violation) return undefined
  const search = createSearch(plan, firstRun, violation.rule, run, options)

  // Two large cuts that often succeed shorten every later run.
  await search.attempt(removeLaterSteps(plan, violation.atMs))
  await search.attempt({ ...search.plan, faultRates: NO_FAULT_RATES })
  let previousPlan: Plan
  do {
    previousPlan = search.plan
    await removeSteps(search)
    for (const simplify of [simplerFaultRates, simplerSetups, simplerTimes, simplerValues])
      await simplifyRepeatedly(search, simplify)
  } while (search.plan !== previousPlan && !search.isBudgetSpent())

  return {
    plan: search.plan,
    run: search.run,
    rule: violation.rule,
    runs: search.runs,
    isComplete: !search.isBudgetSpent(),
  }
}

const NO_FAULT_RATES: Plan['faultRates'] = { network: {}, diskErrors: 0, drivers: {}, crashes: {} }
const MINUTE_MS = 60_000

/** Removes the steps after `atMs`, which cannot have caused the violation. */
function removeLaterSteps(plan: Plan, atMs: number): Plan {
  return {
    ...plan,
    minutes: Math.min(plan.minutes, Math.max(1, Math.ceil(atMs / MINUTE_MS))),
    steps: plan.steps.filter((step) => step.atMs <= atMs),
  }
}

interface Search {
  readonly plan: Plan
  readonly run: SimulationRun
  readonly runs: number
  isBudgetSpent(): boolean
  /** Runs the candidate. If the run violates the same rule, the candidate becomes the plan. */
  attempt(candidate: Plan): Promise<boolean>
}

function createSearch(plan: Plan, firstRun: SimulationRun, rule: string, run: RunPlan, options: ShrinkOptions): Search {
  const { budget, clock, progress } = options
  const deadlineMs = clock.monotonicMs() + budget.ms
  const triedPlans = new Set<string>([JSON.stringify(plan)]) // a repeated run gives the same result
  let bestResult = { plan, run: firstRun }
  let runs = 1
  let isBudgetSpent = false
  return {
    get plan() {
      return bestResult.plan
    },
    get run() {
      return bestResult.run
    },
    get runs() {
      return runs
    },
    isBudgetSpent: () => isBudgetSpent,
    async attempt(candidate) {
      const text = JSON.stringify(candidate)
      if (isBudgetSpent || triedPlans.has(text)) return false
      if (runs >= budget.runs || clock.monotonicMs() >= deadlineMs) {
        isBudgetSpent = true
        return false
      }
      triedPlans.add(text)
      runs++
      const result = await run(candidate)
      if (!result.violations.some((violation) => violation.rule === rule)) return false
      bestResult = { plan: candidate, run: result }
      progress?.(candidate, runs)
      return true
    },
  }
}

/**
 * Delta debugging: tries the plan without each part, in ever smaller parts. The last part comes first: late steps are more
 * often unnecessary, and removing them keeps the positions of earlier parts. Ends after a round in which no single step
 * could be removed.
 */
async function removeSteps(search: Search): Promise<void> {
  let size = Math.ceil(search.plan.steps.length / 2)
  while (search.plan.steps.length > 0 && !search.isBudgetSpent()) {
    let isSmaller = false
    for (let to = search.plan.steps.length; to > 0; to -= size) {
      const steps = search.plan.steps.toSpliced(Math.max(0, to - size), Math.min(size, to))
      isSmaller = (await search.attempt({ ...search.plan, steps })) || isSmaller
    }
    if (size === 1 && !isSmaller) return
    size = Math.ceil(Math.min(size, search.plan.steps.length) / 2)
  }
}

/** Takes the first simpler plan that still fails, and continues from there. */
async function simplifyRepeatedly(search: Search, simplify: Simplifier): Promise<void> {
  for (let isSimplified = true; isSimplified && !search.isBudgetSpent(); ) {
    isSimplified = false
    for (const candidate of simplify(search.plan)) {
      isSimplified = await search.attempt(candidate)
      if (isSimplified || search.isBudgetSpent()) break
    }
  }
}
