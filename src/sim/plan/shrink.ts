// Makes a failing plan small: takes steps away while a violation of the same rule remains, then the faultRates, then makes
// setup, time and values simpler (simpler-plans.ts). Every candidate is run; budget and clock say when to stop.
import type { Clock } from '../../base/clock.ts'
import type { SimulationRun } from '../engine/run.ts'
import type { Plan } from './plan.ts'
import { type Simpler, simplerFaultRates, simplerSetups, simplerTimes, simplerValues } from './simpler-plans.ts'

export type RunPlan = (plan: Plan) => Promise<SimulationRun>

export interface ShrinkBudget {
  readonly runs: number
  readonly ms: number
}

export interface ShrinkOptions {
  readonly budget: ShrinkBudget
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** RecordedEvents after each run that made the plan smaller. */
  readonly progress?: (plan: Plan, runs: number) => void
}

export interface Shrunk {
  readonly plan: Plan
  /** Of that plan. */
  readonly run: SimulationRun
  readonly rule: string
  readonly runs: number
  /** Nothing more can be taken away; otherwise the budget was used up first. */
  readonly isSmallest: boolean
}

/** Of a plan whose run has no violation: undefined. */
export async function shrink(plan: Plan, run: RunPlan, options: ShrinkOptions): Promise<Shrunk | undefined> {
  const first = await run(plan)
  const violation = first.violations[0]
  if (!violation) return undefined
  const search = createSearch(plan, first, violation.rule, run, options)

  // Two large cuts that often succeed make each of the many runs after them shorter.
  await search.attempt(onlyUntil(plan, violation.atMs))
  await search.attempt({ ...search.plan, faultRates: CLEAR })
  let before: Plan
  do {
    before = search.plan
    await fewerSteps(search)
    for (const simpler of [simplerFaultRates, simplerSetups, simplerTimes, simplerValues])
      await descend(search, simpler)
  } while (search.plan !== before && !search.isSpent())

  return { plan: search.plan, run: search.run, rule: violation.rule, runs: search.runs, isSmallest: !search.isSpent() }
}

const CLEAR: Plan['faultRates'] = { network: {}, diskErrors: 0, drivers: {}, crashes: {} }
const MINUTE_MS = 60_000

/** What is planned for later cannot have caused it. */
function onlyUntil(plan: Plan, atMs: number): Plan {
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
  isSpent(): boolean
  /** Whether the candidate fails too; then it is the plan from now on. */
  attempt(candidate: Plan): Promise<boolean>
}

function createSearch(plan: Plan, first: SimulationRun, rule: string, run: RunPlan, options: ShrinkOptions): Search {
  const { budget, clock, progress } = options
  const deadlineMs = clock.monotonicMs() + budget.ms
  const tried = new Set<string>([JSON.stringify(plan)]) // the same run again would say the same again
  let best = { plan, run: first }
  let runs = 1
  let spent = false
  return {
    get plan() {
      return best.plan
    },
    get run() {
      return best.run
    },
    get runs() {
      return runs
    },
    isSpent: () => spent,
    async attempt(candidate) {
      const text = JSON.stringify(candidate)
      if (spent || tried.has(text)) return false
      if (runs >= budget.runs || clock.monotonicMs() >= deadlineMs) {
        spent = true
        return false
      }
      tried.add(text)
      runs++
      const result = await run(candidate)
      if (!result.violations.some((violation) => violation.rule === rule)) return false
      best = { plan: candidate, run: result }
      progress?.(candidate, runs)
      return true
    },
  }
}

/**
 * Delta debugging: the plan without each part, in ever smaller parts. The last part goes first: what comes late is more
 * often in vain, and what is taken away there leaves the places of the earlier parts as they were. It ends only after
 * a round in which each single step was tried and none could go.
 */
async function fewerSteps(search: Search): Promise<void> {
  let size = Math.ceil(search.plan.steps.length / 2)
  while (search.plan.steps.length > 0 && !search.isSpent()) {
    let isSmaller = false
    for (let to = search.plan.steps.length; to > 0; to -= size) {
      const steps = search.plan.steps.toSpliced(Math.max(0, to - size), Math.min(size, to))
      isSmaller = (await search.attempt({ ...search.plan, steps })) || isSmaller
    }
    if (size === 1 && !isSmaller) return
    size = Math.ceil(Math.min(size, search.plan.steps.length) / 2)
  }
}

/** Takes the first simpler plan that still fails, and looks again from there. */
async function descend(search: Search, simpler: Simpler): Promise<void> {
  for (let found = true; found && !search.isSpent(); ) {
    found = false
    for (const candidate of simpler(search.plan)) {
      found = await search.attempt(candidate)
      if (found || search.isSpent()) break
    }
  }
}
