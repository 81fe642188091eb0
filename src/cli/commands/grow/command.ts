// `stowage grow`: flags and help. What runs is run.ts.
import { canonicalQuantity, isQuantity, quantitySign } from '../../../api/quantity.ts'
import { parseDuration } from '../../../base/duration.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'
import type { GrowRequest } from './run.ts'

export const addGrow: AddCommand = (program, deps) => {
  program
    .command('grow')
    .summary('expand claims, one or many, and wait until they have grown')
    .description(
      'Raises the requested size of claims and waits for each until its volume has it, one at a time by default. Stops at the ' +
        'first failure. Run the same command again to continue where it stopped; no claim grows twice.',
    )
    .argument('[claims...]', 'names of claims')
    .option('-l, --selector <labels>', 'all claims with these labels, such as app=db, instead of names')
    .option('-n, --namespace <name>', 'namespace of the claims (default: the namespace of the kubeconfig)')
    .option('--to <size>', 'new size of each claim, such as 20Gi')
    .option('--by <size>', 'or how much to add to each claim')
    .option('--parallel <number>', 'claims to expand at once', '1')
    .option('--interval <duration>', 'minimum time between two starts', '0s')
    .option('--timeout <duration>', 'a claim that takes longer counts as failed', '10m')
    .option('--max-failures <number>', 'stop after more failures than this', '0')
    .option('--dry-run', 'validate on the server and print the plan, without changes')
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
