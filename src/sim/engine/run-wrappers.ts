// Wrappers for the run of a plan: `catchCrashes` turns an exception or an unhandled rejection into a violation, and
// `compareTwoRuns` runs the plan twice and compares the traces.
import process from 'node:process'
import type { Plan } from '../plan/plan.ts'
import type { RunPlan } from '../plan/shrink-plan.ts'
import type { SimulationRun, Violation } from './run-plan.ts'

const UNCAUGHT_EVENTS = ['uncaughtException', 'unhandledRejection'] as const

export function catchCrashes(run: RunPlan): RunPlan {
  return async (plan) => {
    const errors: unknown[] = []
    const recordError = (error: unknown): void => void errors.push(error)
    for (const event of UNCAUGHT_EVENTS) process.on(event, recordError)
    try {
      const result = await run(plan).catch((error: unknown) => {
        recordError(error)
        return emptyRun(plan)
      })
      await new Promise((resolve) => setImmediate(resolve)) // unhandled rejections are reported after all microtasks
      const reportedTexts = new Set(result.violations.map(({ text }) => text))
      const crashes = errors
        .map((error) => crashViolation(error, result))
        .filter(({ text }) => !reportedTexts.has(text))
      return { ...result, violations: [...result.violations, ...crashes] }
    } finally {
      for (const event of UNCAUGHT_EVENTS) process.off(event, recordError)
    }
  }
}

const emptyRun = (plan: Plan): SimulationRun => ({
  plan,
  violations: [],
  trace: [],
  fingerprint: 0,
  virtualMs: 0,
  operations: {},
  faults: {},
})

function crashViolation(error: unknown, { virtualMs }: SimulationRun): Violation {
  return { atMs: virtualMs, rule: 'crash', text: (error instanceof Error && error.stack) || String(error) }
}

/** Runs a plan twice and reports the first difference between the traces. */
export function compareTwoRuns(run: RunPlan): RunPlan {
  return async (plan) => {
    const [firstRun, secondRun] = [await run(plan), await run(plan)]
    const difference = findFirstDifference(firstRun, secondRun)
    if (difference === undefined) return firstRun
    const violation: Violation = { atMs: firstRun.virtualMs, rule: 'same seed, same run', text: difference }
    return { ...firstRun, violations: [...firstRun.violations, violation] }
  }
}

function findFirstDifference(firstRun: SimulationRun, secondRun: SimulationRun): string | undefined {
  const length = Math.max(firstRun.trace.length, secondRun.trace.length)
  for (let index = 0; index < length; index++) {
    const [firstLine, secondLine] = [firstRun.trace[index], secondRun.trace[index]]
    if (firstLine !== secondLine)
      return `line ${index + 1} of the trace was\n  ${firstLine ?? '(the end)'}\nand the second time\n  ${secondLine ?? '(the end)'}`
  }
  if (firstRun.fingerprint === secondRun.fingerprint) return undefined
  return `the last ${length} lines of the traces agree, but an earlier line differs`
}
