// The flags and help of `stowage grow`. What it does is grow.ts, loaded when it is asked for.
import { canonicalQuantity, isQuantity, quantitySign } from '../../../api/quantity.ts'
import { parseDuration } from '../../../base/duration.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'
import type { GrowRequest } from './run.ts'

export const addGrow: AddCommand = (program, deps) => {
  program
    .command('grow')
    .summary('grow claims, one or a whole set, and follow them until they have grown')
    .description(
      'Raises the size of claims and follows each until its volume has it, one after the other unless told otherwise. Stops at the first ' +
        'failure. Whatever happens, running the same command again goes on where it stopped, and grows nothing twice.',
    )
    .argument('[claims...]', 'names of claims')
    .option('-l, --selector <labels>', 'all claims with these labels, such as app=db, instead of names')
    .option('-n, --namespace <name>', 'where they are (default: the namespace of the kubeconfig)')
    .option('--to <size>', 'the size each is to have, such as 20Gi')
    .option('--by <size>', 'or how much each is to get on top of what it has')
    .option('--parallel <number>', 'how many grow at a time', '1')
    .option('--interval <duration>', 'at least this long between two starts', '0s')
    .option('--timeout <duration>', 'a claim that takes longer has failed', '10m')
    .option('--max-failures <number>', 'go on as long as no more than these have failed', '0')
    .option('--dry-run', 'ask the server and say what would happen, and change nothing')
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExit code 0: all have grown; 1: some have not; 2: used wrongly; 130: interrupted.\n' +
        '\nExamples:\n  stowage grow orders --to 20Gi\n  stowage grow --selector app=db --by 10Gi --namespace shop\n',
    )
    .action(async (names: string[], flags) => {
      const request = readRequest(names, flags)
      const { runGrow } = await import('./run.ts')
      await runGrow(request, {
        ...deps,
        env: process.env,
        terminal: process.stdout.isTTY ? { columns: () => process.stdout.columns ?? 80 } : undefined,
      })
    })
}

export interface GrowFlags {
  readonly selector?: string
  readonly namespace?: string
  readonly to?: string
  readonly by?: string
  readonly parallel: string
  readonly interval: string
  readonly timeout: string
  readonly maxFailures: string
  readonly dryRun?: boolean
  readonly kubeconfig?: string
  readonly output: string
}

export function readRequest(names: readonly string[], flags: GrowFlags): GrowRequest {
  const { to, by, selector, namespace, kubeconfig } = flags
  if ((to === undefined) === (by === undefined)) throw new UsageError('To which size? Give --to or --by, and not both.')
  return {
    names,
    ...(selector === undefined ? {} : { selector }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    size: to === undefined ? { by: sizeOf('--by', by!) } : { to: sizeOf('--to', to) },
    parallel: numberOf('--parallel', flags.parallel, { min: 1, max: PARALLEL_MAX }),
    intervalMs: durationOf('--interval', flags.interval, { min: 0 }),
    timeoutMs: durationOf('--timeout', flags.timeout, { min: 1 }),
    failuresMax: numberOf('--max-failures', flags.maxFailures, { min: 0 }),
    isDryRun: flags.dryRun === true,
    output: flags.output === 'json' ? 'json' : 'text',
  }
}

const PARALLEL_MAX = 100

function sizeOf(flag: string, text: string): string {
  if (isQuantity(text) && quantitySign(text) > 0) return canonicalQuantity(text)
  const hint = text.startsWith('-') || text.startsWith('+') ? '; nothing is ever lowered by growing' : ''
  throw new UsageError(`${flag} ${JSON.stringify(text)}: expected a size above 0, such as 20Gi${hint}`)
}

function numberOf(flag: string, text: string, { min, max = 1_000_000 }: { min: number; max?: number }): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new UsageError(`${flag} ${JSON.stringify(text)}: expected a whole number from ${min} to ${max}`)
}

function durationOf(flag: string, text: string, { min }: { min: number }): number {
  const ms = text === '0' ? 0 : parseDuration(text)
  if (ms !== undefined && ms >= min) return ms
  throw new UsageError(`${flag} ${JSON.stringify(text)}: expected a duration, such as 30s or 10m`)
}
