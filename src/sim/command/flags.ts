// Parses the flags of `npm run sim`. Pure: arguments in, a command or an error out.
import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { PlanOptions } from '../workload/generate-plan.ts'
import { WORKLOAD_NAMES, type WorkloadName } from '../workload/workloads.ts'

export const USAGE = `Usage: npm run sim -- [flags]

One run:
  --seed N             run this seed; print its timeline if a checker finds a violation
  --plan FILE          run a plan that --save wrote
  --shrink             shrink a failing plan before printing its timeline
  --all                print the whole trace, not only the lines about the violation

Many runs:
  --minutes M          run seeds for M minutes of real time (default: 1)
  --seeds N            run N seeds
  --from SEED          start with this seed (default: a fresh one, from the clock)
  --workers W          run W processes at once (default: one per core)

Both:
  --workload NAME      what users do: ${WORKLOAD_NAMES.join(', ')}
                       (default: mixed)
  --answers stock      make the server answer as a stock API server does; the plan of a seed then differs
  --operations N       number of user actions per run
  --faults N           number of planned faults per run
  --targeted-faults N  number of faults aimed at an action in progress (mixed: 6 to 10 by default)
  --twice              run each plan twice and compare the traces line by line
  --save               shrink the failing plan and write it to src/sim/regressions
  --description TEXT   the bug in one sentence, saved with the regression
  --json FILE          also write figures and violations to this file
  --help               print this text
`

export interface CommonOptions {
  readonly plan: PlanOptions
  readonly runsTwice: boolean
  readonly save: boolean
  readonly description: string | undefined
  readonly json: string | undefined
}
export type OneRun = CommonOptions & {
  readonly do: 'one'
  readonly target: { readonly seed: number } | { readonly file: string }
  readonly shrink: boolean
  readonly all: boolean
}
export type ManyRuns = CommonOptions & {
  readonly do: 'many'
  /** The first seed; undefined for a fresh one. */
  readonly from: number | undefined
  readonly until: { readonly seeds: number } | { readonly minutes: number }
  readonly workers: number
}
export type Command = { readonly do: 'help' } | OneRun | ManyRuns

export class FlagError extends Error {}

const OPTIONS = {
  seed: { type: 'string' },
  plan: { type: 'string' },
  shrink: { type: 'boolean' },
  all: { type: 'boolean' },
  minutes: { type: 'string' },
  seeds: { type: 'string' },
  from: { type: 'string' },
  workers: { type: 'string' },
  operations: { type: 'string' },
  faults: { type: 'string' },
  workload: { type: 'string' },
  answers: { type: 'string' },
  'targeted-faults': { type: 'string' },
  twice: { type: 'boolean' },
  save: { type: 'boolean' },
  description: { type: 'string' },
  json: { type: 'string' },
  help: { type: 'boolean' },
} as const satisfies ParseArgsConfig['options']
type Flag = keyof typeof OPTIONS
type FlagValues = Partial<Record<Flag, string | boolean>>

const SEED_MAX = 2 ** 32 - 1
const SINGLE_RUN_FLAGS: readonly Flag[] = ['seed', 'plan', 'shrink', 'all']
const MANY_RUN_FLAGS: readonly Flag[] = ['minutes', 'seeds', 'from', 'workers']
/** Flags that set how a plan is generated from its seed. */
const GENERATOR_FLAGS: readonly Flag[] = ['operations', 'faults', 'targeted-faults', 'workload', 'answers']

export function readFlags(args: readonly string[], { cores }: { readonly cores: number }): Command {
  const values = parseFlags(args)
  if (values.help) return { do: 'help' }
  rejectPair(values, 'seed', 'plan', 'Each of them selects the plan of the run')
  rejectPair(values, 'minutes', 'seeds', 'Each of them sets when to stop')
  for (const flag of GENERATOR_FLAGS)
    rejectPair(values, 'plan', flag, 'A saved plan already contains its steps and setup')
  if (values.description !== undefined && !values.save)
    throw new FlagError('--description applies only with --save. Add --save, or omit --description.')

  const commonOptions: CommonOptions = {
    plan: removeUndefined({
      operations: readNumber(values, 'operations', { min: 0, max: 100_000 }),
      faults: readNumber(values, 'faults', { min: 0, max: 100_000 }),
      targetedFaults: readNumber(values, 'targeted-faults', { min: 0, max: 10_000 }),
      workload: readWorkload(values),
      answers: readAnswers(values),
    }),
    runsTwice: Boolean(values.twice),
    save: Boolean(values.save),
    description: values.description as string | undefined,
    json: values.json as string | undefined,
  }
  const seed = readNumber(values, 'seed', { min: 0, max: SEED_MAX })
  const target = seed !== undefined ? { seed } : values.plan !== undefined ? { file: String(values.plan) } : undefined
  if (target) {
    rejectFlags(
      values,
      MANY_RUN_FLAGS,
      'applies to many runs, but --seed and --plan select one. Omit it, or omit --seed and --plan.',
    )
    return { ...commonOptions, do: 'one', target, shrink: Boolean(values.shrink), all: Boolean(values.all) }
  }
  rejectFlags(values, SINGLE_RUN_FLAGS, 'applies to one run. Add --seed N or --plan FILE.')
  const seeds = readNumber(values, 'seeds', { min: 1, max: SEED_MAX })
  const minutes = readNumber(values, 'minutes', { min: 0.01, max: 7 * 24 * 60, isInteger: false })
  return {
    ...commonOptions,
    do: 'many',
    from: readNumber(values, 'from', { min: 0, max: SEED_MAX }),
    until: seeds !== undefined ? { seeds } : { minutes: minutes ?? 1 },
    workers: readNumber(values, 'workers', { min: 1, max: 256 }) ?? cores,
  }
}

function parseFlags(args: readonly string[]): FlagValues {
  try {
    return parseArgs({ args: joinNegativeNumbers(args), options: OPTIONS }).values
  } catch (error) {
    const [message] = (error as Error).message.split(/\.\s/)
    throw new FlagError(`${message}. \`npm run sim -- --help\` lists the flags. Flags follow a lone \`--\`.`)
  }
}

/** Joins `--seed -1` to `--seed=-1`, so that the message is about the number and not about a flag -1. */
function joinNegativeNumbers(args: readonly string[]): string[] {
  const joinedArgs: string[] = []
  for (const arg of args) {
    if (/^-[\d.]/.test(arg) && joinedArgs.at(-1)?.startsWith('--')) joinedArgs.push(`${joinedArgs.pop()}=${arg}`)
    else joinedArgs.push(arg)
  }
  return joinedArgs
}

function rejectPair(values: FlagValues, first: Flag, second: Flag, reason: string): void {
  if (values[first] !== undefined && values[second] !== undefined)
    throw new FlagError(`--${first} and --${second} exclude each other. ${reason}. Omit one of them.`)
}

function rejectFlags(values: FlagValues, flags: readonly Flag[], reason: string): void {
  const flag = flags.find((name) => values[name] !== undefined)
  if (flag) throw new FlagError(`--${flag} ${reason}`)
}

function readNumber(
  values: FlagValues,
  flag: Flag,
  bounds: { min: number; max: number; isInteger?: boolean },
): number | undefined {
  const text = values[flag]
  if (text === undefined) return undefined
  const { min, max, isInteger = true } = bounds
  const value = Number(text)
  if (text === '' || !Number.isFinite(value) || value < min || value > max || (isInteger && !Number.isInteger(value)))
    throw new FlagError(
      `--${flag} takes a ${isInteger ? 'whole ' : ''}number from ${min} to ${max}, not "${text}". For example: --${flag} ${Math.max(1, min)}`,
    )
  return value
}

function readWorkload({ workload }: FlagValues): WorkloadName | undefined {
  if (workload === undefined) return undefined
  const workloadName = WORKLOAD_NAMES.find((name) => name === workload)
  if (!workloadName)
    throw new FlagError(`There is no workload "${workload}". Known workloads: ${WORKLOAD_NAMES.join(', ')}.`)
  return workloadName
}

function readAnswers({ answers }: FlagValues): 'stock' | undefined {
  if (answers !== undefined && answers !== 'stock') throw new FlagError(`--answers takes "stock", not "${answers}".`)
  return answers
}

const removeUndefined = (options: PlanOptions): PlanOptions =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
