// `stowage migrate`: flags and help. What runs is run.ts.
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import { parseLabelSelector } from '../../../api/selectors.ts'
import { parseDuration } from '../../../base/duration.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'
import type { MigrateRequest } from './run.ts'

export const addMigrate: AddCommand = (program, deps) => {
  program
    .command('migrate')
    .summary('move claims to another VolumeAttributesClass at a limited rate, and back')
    .description(
      'Moves all claims of one VolumeAttributesClass to another and waits for each until its volume has the new attributes. ' +
        'Pauses after too many failures. Run the same command again, on any machine, to continue where it stopped; --undo ' +
        'moves back exactly the claims that were moved.',
    )
    .option('--from <class>', 'current class; "" for claims without one')
    .option('--to <class>', 'new class')
    .option('--undo', 'move the claims of an operation back')
    .option('--operation <id>', 'operation to undo, if there are several')
    .option('-n, --namespace <name>', 'namespace of the claims (default: the namespace of the kubeconfig)')
    .option('-A, --all-namespaces', 'in all namespaces')
    .option('-l, --selector <labels>', 'only claims with these labels, such as app=db')
    .option('--rate <count/time>', 'claims to start in a time, such as 5/s or 100/m', '5/s')
    .option('--parallel <number>', 'claims in progress at once', '50')
    .option('--max-failures <number>', 'pause after more failures than this', '3')
    .option('--timeout <duration>', 'a claim that takes longer counts as failed', '10m')
    .option('--dry-run', 'validate on the server and print the plan, without changes')
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExit code 0: all have arrived; 1: some have not; 2: used wrongly; 130: interrupted.\n' +
        '\nExamples:\n  stowage migrate --from silver --to gold --all-namespaces --rate 5/s\n' +
        '  stowage migrate --undo --operation m-1f2e3d4c --all-namespaces\n',
    )
    .action(async (flags) => {
      const request = readRequest(flags)
      const { runMigrate } = await import('./run.ts')
      await runMigrate(request, {
        ...deps,
        env: process.env,
        terminal: process.stdout.isTTY ? { columns: () => process.stdout.columns || 80 } : undefined,
      })
    })
}

export interface MigrateFlags {
  readonly from?: string
  readonly to?: string
  readonly undo?: boolean
  readonly operation?: string
  readonly namespace?: string
  readonly allNamespaces?: boolean
  readonly selector?: string
  readonly rate: string
  readonly parallel: string
  readonly maxFailures: string
  readonly timeout: string
  readonly dryRun?: boolean
  readonly kubeconfig?: string
  readonly output: string
}

export function readRequest(flags: MigrateFlags): MigrateRequest {
  const { namespace, selector, kubeconfig } = flags
  if (namespace !== undefined && flags.allNamespaces) {
    throw new UsageError('Give --namespace or --all-namespaces, not both.')
  }
  return {
    direction: directionOf(flags),
    ...(namespace === undefined ? {} : { namespace }),
    inAllNamespaces: flags.allNamespaces === true,
    ...(selector === undefined ? {} : { selector: selectorOf(selector) }),
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    parallel: numberOf('--parallel', flags.parallel, { min: 1, max: PARALLEL_MAX }),
    rate: flags.rate,
    intervalMs: intervalOf(flags.rate),
    timeoutMs: timeoutOf(flags.timeout),
    failuresMax: numberOf('--max-failures', flags.maxFailures, { min: 0, max: FAILURES_MAX }),
    isDryRun: flags.dryRun === true,
    output: flags.output === 'json' ? 'json' : 'text',
  }
}

const PARALLEL_MAX = 1_000
const FAILURES_MAX = 1_000_000

function directionOf({ from, to, undo, operation }: MigrateFlags): MigrateRequest['direction'] {
  if (from) classNameOf('--from', from)
  if (to) classNameOf('--to', to)
  if (undo) {
    return {
      is: 'undo',
      ...(operation === undefined ? {} : { id: operation }),
      ...(from === undefined ? {} : { from }),
      ...(to === undefined ? {} : { to }),
    }
  }
  if (operation !== undefined) throw new UsageError('--operation message what to --undo; give both, or neither.')
  if (from === undefined || to === undefined) throw new UsageError('From which class to which? Give --from and --to.')
  if (to === '') throw new UsageError('--to is empty: a volume that has a class cannot go back to none; name a class.')
  if (from === to) throw new UsageError(`--from and --to are both ${to}: nothing would change.`)
  return { is: 'forward', from, to }
}

function classNameOf(flag: string, name: string): void {
  const [problem] = dns1123SubdomainProblems(name)
  if (problem) throw new UsageError(`${flag} ${JSON.stringify(name)} is no name of a class: ${problem}`)
}

function selectorOf(text: string): string {
  try {
    parseLabelSelector(text)
    return text
  } catch (error) {
    throw new UsageError(`--selector ${JSON.stringify(text)}: ${(error as Error).message}`)
  }
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 }

/** Milliseconds between two starts. */
function intervalOf(text: string): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?)\/(s|m|h)$/.exec(text.trim()) ?? []
  if (count !== undefined && Number(count) > 0) return UNITS_MS[unit!]! / Number(count)
  throw new UsageError(
    `--rate ${JSON.stringify(text)}: expected so many in a second, minute or hour, such as 5/s or 100/m`,
  )
}

function numberOf(flag: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new UsageError(`${flag} ${JSON.stringify(text)}: expected a whole number from ${min} to ${max}`)
}

function timeoutOf(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms > 0) return ms
  throw new UsageError(`--timeout ${JSON.stringify(text)}: expected a duration, such as 30s or 10m`)
}
