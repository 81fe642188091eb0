// Runs of a plan that end with a verdict whatever happens: what is thrown out of one, or rejected with nobody listening,
// is a violation too. And runs that are made twice, to see that the same seed gives the same run.
import process from 'node:process'
import type { Plan } from '../plan/plan.ts'
import type { RunPlan } from '../plan/shrink.ts'
import type { SimulationRun, Violation } from './run.ts'

const SURPRISES = ['uncaughtException', 'unhandledRejection'] as const

export function safely(run: RunPlan): RunPlan {
  return async (plan) => {
    const surprises: unknown[] = []
    const notice = (error: unknown): void => void surprises.push(error)
    for (const event of SURPRISES) process.on(event, notice)
    try {
      const result = await run(plan).catch((error: unknown) => {
        notice(error)
        return nothingOf(plan)
      })
      await new Promise((resolve) => setImmediate(resolve)) // rejections are reported once all microtasks have run
      const told = new Set(result.violations.map(({ text }) => text))
      const crashes = surprises.map((error) => crash(error, result)).filter(({ text }) => !told.has(text))
      return { ...result, violations: [...result.violations, ...crashes] }
    } finally {
      for (const event of SURPRISES) process.off(event, notice)
    }
  }
}

const nothingOf = (plan: Plan): SimulationRun => ({
  plan,
  violations: [],
  log: [],
  fingerprint: 0,
  virtualMs: 0,
  operations: {},
  faults: {},
})

function crash(error: unknown, { virtualMs }: SimulationRun): Violation {
  return { atMs: virtualMs, rule: 'crash', text: (error instanceof Error && error.stack) || String(error) }
}

/** The second run only serves to be compared, line by line. */
export function twice(run: RunPlan): RunPlan {
  return async (plan) => {
    const [first, second] = [await run(plan), await run(plan)]
    const difference = firstDifference(first, second)
    if (difference === undefined) return first
    const violation: Violation = { atMs: first.virtualMs, rule: 'same seed, same run', text: difference }
    return { ...first, violations: [...first.violations, violation] }
  }
}

function firstDifference(first: SimulationRun, second: SimulationRun): string | undefined {
  const length = Math.max(first.log.length, second.log.length)
  for (let index = 0; index < length; index++) {
    const [one, other] = [first.log[index], second.log[index]]
    if (one !== other)
      return `line ${index + 1} of the log was\n  ${one ?? '(the end)'}\nand the second time\n  ${other ?? '(the end)'}`
  }
  if (first.fingerprint === second.fingerprint) return undefined
  return `all ${length} lines that were kept agree, but something noted before them differs`
}
