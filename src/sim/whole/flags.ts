// The flags of `npm run sim`: what they are, and what is asked for by them. Pure: words in, a command or an error out.
import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { PlanSize } from './make-plan.ts'

export const USAGE = `Usage: npm run sim -- [flags]

One run:
  --seed N          the run of this seed; prints its timeline if it has a violation
  --plan FILE       the run of a plan that --save wrote
  --shrink          make a failing plan as small as possible first
  --all             the whole log, not only what is about the violation

Many runs:
  --minutes M       as many seeds as fit into M minutes of real time (default: 1 minute)
  --seeds N         this many seeds
  --from SEED       begin with this seed (default: fresh seeds, from the time)
  --workers W       processes at once (default: one for each core)

Either:
  --operations N    what people do in a run
  --faults N        what is planned to break in a run
  --ambushes N      faults that are aimed at what somebody is about to do (default: 6 to 10)
  --twice           make each run twice and compare the logs line by line
  --save            write what fails, shrunk, to src/sim/whole/regressions
  --found TEXT      what it found, a sentence that is saved with it
  --json FILE       write the figures and violations there too
  --help            this text
`

export interface Common {
  readonly size: PlanSize
  readonly isTwice: boolean
  readonly save: boolean
  readonly found: string | undefined
  readonly json: string | undefined
}
export type OneRun = Common & {
  readonly do: 'one'
  readonly of: { readonly seed: number } | { readonly file: string }
  readonly shrink: boolean
  readonly all: boolean
}
export type ManyRuns = Common & {
  readonly do: 'many'
  /** Undefined: fresh ones. */
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
  ambushes: { type: 'string' },
  twice: { type: 'boolean' },
  save: { type: 'boolean' },
  found: { type: 'string' },
  json: { type: 'string' },
  help: { type: 'boolean' },
} as const satisfies ParseArgsConfig['options']
type Flag = keyof typeof OPTIONS
type Given = Partial<Record<Flag, string | boolean>>

const SEED_MAX = 2 ** 32 - 1
const OF_ONE: readonly Flag[] = ['seed', 'plan', 'shrink', 'all']
const OF_MANY: readonly Flag[] = ['minutes', 'seeds', 'from', 'workers']

export function readFlags(args: readonly string[], { cores }: { readonly cores: number }): Command {
  const given = parsed(args)
  if (given.help) return { do: 'help' }
  refusePair(given, 'seed', 'plan', 'A run has one plan')
  refusePair(given, 'minutes', 'seeds', 'One of them says when to stop')
  refusePair(given, 'plan', 'operations', 'A saved plan has its steps')
  refusePair(given, 'plan', 'faults', 'A saved plan has its steps')
  refusePair(given, 'plan', 'ambushes', 'A saved plan has its steps')
  if (given.found !== undefined && !given.save)
    throw new FlagError('--found is a sentence to save, and nothing is saved. Add --save, or leave --found out.')

  const common: Common = {
    size: definedOnly({
      operations: numberOf(given, 'operations', { min: 0, max: 100_000 }),
      faults: numberOf(given, 'faults', { min: 0, max: 100_000 }),
      ambushes: numberOf(given, 'ambushes', { min: 0, max: 10_000 }),
    }),
    isTwice: Boolean(given.twice),
    save: Boolean(given.save),
    found: given.found as string | undefined,
    json: given.json as string | undefined,
  }
  const seed = numberOf(given, 'seed', { min: 0, max: SEED_MAX })
  const one = seed !== undefined ? { seed } : given.plan !== undefined ? { file: String(given.plan) } : undefined
  if (one) {
    refuse(
      given,
      OF_MANY,
      'is about many runs, and --seed or --plan ask for one. Leave it out, or use --seeds or --minutes.',
    )
    return { ...common, do: 'one', of: one, shrink: Boolean(given.shrink), all: Boolean(given.all) }
  }
  refuse(given, OF_ONE, 'is about one run. Say which: --seed N, or --plan FILE.')
  const seeds = numberOf(given, 'seeds', { min: 1, max: SEED_MAX })
  const minutes = numberOf(given, 'minutes', { min: 0.01, max: 7 * 24 * 60, isWhole: false })
  return {
    ...common,
    do: 'many',
    from: numberOf(given, 'from', { min: 0, max: SEED_MAX }),
    until: seeds !== undefined ? { seeds } : { minutes: minutes ?? 1 },
    workers: numberOf(given, 'workers', { min: 1, max: 256 }) ?? cores,
  }
}

function parsed(args: readonly string[]): Given {
  try {
    return parseArgs({ args: withNegatives(args), options: OPTIONS }).values
  } catch (error) {
    const [what] = (error as Error).message.split(/\.\s/)
    throw new FlagError(`${what}. \`npm run sim -- --help\` lists the flags; they come after a lone \`--\`.`)
  }
}

/** `--seed -1` is a number out of bounds, not a flag -1. */
function withNegatives(args: readonly string[]): string[] {
  const joined: string[] = []
  for (const arg of args) {
    if (/^-[\d.]/.test(arg) && joined.at(-1)?.startsWith('--')) joined.push(`${joined.pop()}=${arg}`)
    else joined.push(arg)
  }
  return joined
}

function refusePair(given: Given, one: Flag, other: Flag, because: string): void {
  if (given[one] !== undefined && given[other] !== undefined)
    throw new FlagError(`--${one} and --${other} do not go together. ${because}: leave one of them out.`)
}

function refuse(given: Given, flags: readonly Flag[], because: string): void {
  const flag = flags.find((name) => given[name] !== undefined)
  if (flag) throw new FlagError(`--${flag} ${because}`)
}

function numberOf(
  given: Given,
  flag: Flag,
  bounds: { min: number; max: number; isWhole?: boolean },
): number | undefined {
  const text = given[flag]
  if (text === undefined) return undefined
  const { min, max, isWhole = true } = bounds
  const value = Number(text)
  if (text === '' || !Number.isFinite(value) || value < min || value > max || (isWhole && !Number.isInteger(value)))
    throw new FlagError(
      `--${flag} takes a ${isWhole ? 'whole ' : ''}number from ${min} to ${max}, not "${text}". For example: --${flag} ${Math.max(1, min)}`,
    )
  return value
}

const definedOnly = (size: PlanSize): PlanSize =>
  Object.fromEntries(Object.entries(size).filter(([, value]) => value !== undefined))
