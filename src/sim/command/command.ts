// Executes a command of `npm run sim`: one run with its timeline, or many runs with a table of figures and the first
// failures shrunk. Returns the exit code.
import { writeFile } from 'node:fs/promises'
import { relative } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import type { SimulationRun } from '../engine/run-plan.ts'
import { catchCrashes, compareTwoRuns } from '../engine/run-wrappers.ts'
import type { Plan } from '../plan/plan.ts'
import { PlanFileError, readPlanFile, saveRegression } from '../plan/plan-file.ts'
import { type RunPlan, type ShrinkBudget, type ShrinkResult, shrink } from '../plan/shrink-plan.ts'
import { formatTimeline } from '../trace/timeline.ts'
import type { PlanOptions } from '../workload/generate-plan.ts'
import { type Command, type CommonOptions, FlagError, type ManyRuns, type OneRun, readFlags, USAGE } from './flags.ts'
import {
  addResult,
  createTotals,
  formatReport,
  groupByRule,
  type SeedResult,
  type Totals,
  toSeedResult,
} from './report.ts'
import { NO_RESULT, runSeeds, type SeedWorker } from './seed-pool.ts'

export interface SimProgram {
  readonly generatePlan: (seed: number, options: PlanOptions) => Plan
  readonly run: RunPlan
  readonly clock: Clock
  readonly cores: number
  /** Where --save writes. */
  readonly regressionsDir: string
  /** Starts a process that returns the results of runSeed with these flags. */
  readonly startWorker: (flags: readonly string[]) => SeedWorker
  readonly print: (text: string) => void
  /** Prints a status line while a command runs. */
  readonly progress: (text: string) => void
}

/** Budgets of shrinking: with --shrink or --save, and for failures among many seeds. */
const REQUESTED_SHRINK_BUDGET: ShrinkBudget = { runs: 2_000, ms: 600_000 }
const FAILURE_SHRINK_BUDGET: ShrinkBudget = { runs: 400, ms: 90_000 }
/** Number of failures that are shrunk, each of a different rule. The table lists all failures. */
const SHRUNK_FAILURES_MAX = 3
const PROGRESS_INTERVAL_MS = 5_000

export async function simulate(args: readonly string[], program: SimProgram): Promise<number> {
  try {
    const command = readFlags(args, program)
    return await runCommand(command, program)
  } catch (error) {
    if (!(error instanceof FlagError || error instanceof PlanFileError)) throw error
    program.print(`${error.message}\n`)
    return 2
  }
}

function runCommand(command: Command, program: SimProgram): number | Promise<number> {
  switch (command.do) {
    case 'help':
      program.print(USAGE)
      return 0
    case 'one':
      return runOne(command, program)
    case 'many':
      return runMany(command, program)
  }
}

/** Runs one seed in a worker. */
export async function runSeed(
  seed: number,
  command: CommonOptions,
  program: Pick<SimProgram, 'generatePlan' | 'run'>,
): Promise<SeedResult> {
  return toSeedResult(seed, await chooseRunner(command, program)(program.generatePlan(seed, command.plan)))
}

const chooseRunner = ({ runsTwice }: CommonOptions, { run }: Pick<SimProgram, 'run'>): RunPlan =>
  catchCrashes(runsTwice ? compareTwoRuns(run) : run)

async function runOne(command: OneRun, program: SimProgram): Promise<number> {
  const { target } = command
  const plan =
    'seed' in target ? program.generatePlan(target.seed, command.plan) : (await readPlanFile(target.file)).plan
  const startMs = program.clock.monotonicMs()
  const run = await chooseRunner(command, program)(plan)
  const realMs = program.clock.monotonicMs() - startMs
  const totals = createTotals()
  addResult(totals, toSeedResult(plan.seed, run))
  if (command.json) await writeJson(command.json, totals)
  if (run.violations.length === 0) {
    const summary = `Seed ${plan.seed}: no violation.\n\n`
    program.print(
      `${command.all ? `${formatTimeline(run, command)}\n` : ''}${summary}${formatReport(totals, { realMs })}`,
    )
    return 0
  }
  if (command.shrink || command.save)
    await printShrunkPlan(plan, command, REQUESTED_SHRINK_BUDGET, program, formatRunFlags(command))
  else program.print(`${formatTimeline(run, command)}\n${formatAdvice(formatRunFlags(command))}`)
  return 1
}

async function runMany(command: ManyRuns, program: SimProgram): Promise<number> {
  const { clock, print } = program
  const firstSeed = command.from ?? newSeed(clock)
  const startMs = clock.monotonicMs()
  const elapsedMs = () => clock.monotonicMs() - startMs
  const isOver = (startedCount: number) =>
    'seeds' in command.until ? startedCount >= command.until.seeds : elapsedMs() >= command.until.minutes * 60_000
  let startedCount = 0
  let printedMs = 0
  print(`Seeds from ${firstSeed}, ${command.workers} at once.\n`)
  const totals = await runSeeds({
    workers: command.workers,
    startWorker: () => program.startWorker(formatFlags(command)),
    nextSeed: () => (isOver(startedCount) ? undefined : firstSeed + startedCount++),
    progress: (currentTotals) => {
      if (elapsedMs() - printedMs < PROGRESS_INTERVAL_MS) return
      printedMs = elapsedMs()
      program.progress(formatProgress(currentTotals, printedMs))
    },
  })
  print(`\n${formatReport(totals, { realMs: elapsedMs() })}`)
  if (command.json) await writeJson(command.json, totals)
  for (const { seed, violations } of selectFirstFailures(totals)) {
    if (violations[0]!.rule === NO_RESULT) {
      print(
        `\nSeed ${seed} has no result and cannot be shrunk. Run it alone:\n${formatReplay(formatSeedFlags(seed, command))}`,
      )
      continue
    }
    print(`\nSeed ${seed}, rule "${violations[0]!.rule}": shrinking …\n`)
    await printShrunkPlan(
      program.generatePlan(seed, command.plan),
      command,
      FAILURE_SHRINK_BUDGET,
      program,
      formatSeedFlags(seed, command),
    )
  }
  return totals.failures.length > 0 ? 1 : 0
}

const selectFirstFailures = ({ failures }: Totals): SeedResult[] =>
  [...groupByRule(failures).values()].slice(0, SHRUNK_FAILURES_MAX).map(([first]) => first!)

/** Returns a different seed each second. */
const newSeed = (clock: Clock): number => Math.floor(clock.nowMs() / 1000) % 1_000_000_000

const formatProgress = ({ seeds, failures }: Totals, ms: number): string =>
  `${seeds} seeds, ${(seeds / (ms / 1000)).toFixed(2)} seeds/s, ${failures.length} with violations${formatLastFailure(failures)}`

const formatLastFailure = (failures: Totals['failures']): string => {
  const lastFailure = failures.at(-1)
  return lastFailure ? `, the last: seed ${lastFailure.seed}, "${lastFailure.violations[0]?.rule}"` : ''
}

async function printShrunkPlan(
  plan: Plan,
  command: CommonOptions & { readonly all?: boolean },
  budget: ShrinkBudget,
  program: SimProgram,
  flags: readonly string[],
): Promise<void> {
  const { clock, print } = program
  const result = await shrink(plan, chooseRunner(command, program), {
    budget,
    clock,
    progress: ({ steps }, runs) => program.progress(`${steps.length} steps left after ${runs} runs`),
  })
  if (!result) {
    // A worker runs many seeds in one process, and shrinking starts after a run in this process.
    print('The plan did not fail again: state that an earlier run left in the process influenced one of the runs.\n')
    return
  }
  print(
    `${plan.steps.length} steps became ${result.plan.steps.length} in ${result.runs} runs${result.isComplete ? '' : ' (budget used up)'}.\n\n`,
  )
  print(formatTimeline(result.run, command))
  print(command.save ? await saveShrunkPlan(result, command, program) : `\n${formatAdvice(flags)}`)
}

async function saveShrunkPlan(
  { plan, rule, run }: ShrinkResult,
  command: CommonOptions,
  { regressionsDir }: SimProgram,
): Promise<string> {
  const description = command.description ?? readFirstLine(run, rule)
  const file = relative('', await saveRegression(regressionsDir, { description, rule, plan }))
  return `
Saved ${file}: ${description}
Run it:  npm run sim -- --plan ${file}
src/sim/regressions/regressions.test.ts runs it from now on.
`
}

const readFirstLine = ({ violations }: SimulationRun, rule: string): string =>
  violations.find((violation) => violation.rule === rule)!.text.split('\n')[0]!

const formatRunFlags = (command: OneRun): string[] => [
  ...('seed' in command.target ? ['--seed', `${command.target.seed}`] : ['--plan', command.target.file]),
  ...formatFlags(command),
]

/** Every flag that decides what a seed does: workers and replay lines need all of them. */
const PLAN_FLAGS = {
  workload: '--workload',
  answers: '--answers',
  minutes: undefined, // no flag sets it
  operations: '--operations',
  faults: '--faults',
  targetedFaults: '--targeted-faults',
} as const satisfies Record<keyof Required<PlanOptions>, string | undefined>

const formatFlags = ({ plan, runsTwice }: CommonOptions): string[] => [
  ...(Object.keys(PLAN_FLAGS) as (keyof PlanOptions)[]).flatMap((name) => {
    const [flag, value] = [PLAN_FLAGS[name], plan[name]]
    return flag === undefined || value === undefined ? [] : [flag, `${value}`]
  }),
  ...(runsTwice ? ['--twice'] : []),
]

const formatSeedFlags = (seed: number, command: CommonOptions): string[] => [
  '--seed',
  `${seed}`,
  ...formatFlags(command),
]

const formatReplay = (flags: readonly string[]): string => `Replay:  npm run sim -- ${flags.join(' ')}\n`

const formatAdvice = (flags: readonly string[]): string => `\
${formatReplay(flags)}\
Shrink:  npm run sim -- ${flags.join(' ')} --shrink
Save:    npm run sim -- ${flags.join(' ')} --save --description 'The bug in one sentence.'
`

const writeJson = (file: string, totals: Totals): Promise<void> =>
  writeFile(file, `${JSON.stringify(totals, null, 2)}\n`)
