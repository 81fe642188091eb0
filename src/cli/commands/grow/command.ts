// `stowage grow`: flags and help. run.ts runs the command.
import { UsageError } from '../../../base/usage-error.ts'
import { createBulkDeps } from '../../bulk/deps.ts'
import { type BulkFlags, readBulkFlags, readDuration, readSize } from '../../bulk/flags.ts'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'
import type { GrowRequest } from './run.ts'
import type { UndoRequest } from './undo.ts'

export const addGrow: AddCommand = (program, deps) => {
  program
    .command('grow')
    .summary('expand one or many claims and wait until they have the new size')
    .description(
      'Increases the requested size of claims and waits until each volume has it, by default one claim at a time and ' +
        'until the first failure. Run the same command again to continue; no claim grows twice.',
    )
    .argument('[claims...]', 'names of claims')
    .option('-l, --selector <labels>', 'label selector of the claims, such as app=db, instead of names')
    .option('-n, --namespace <name>', 'namespace of the claims (default: the namespace of the kubeconfig)')
    .option('--to <size>', 'new size of each claim, such as 20Gi')
    .option('--by <size>', 'amount to add to each claim, instead of --to')
    .option('--undo', 'lower requests that exceed the size of their volumes to that size')
    .option('--parallel <number>', 'maximum number of claims in progress', '1')
    .option('--interval <duration>', 'minimum time between two starts', '0s')
    .option('--timeout <duration>', 'maximum time for one claim', '10m')
    .option('--max-failures <number>', 'stop after more failures than this', '0')
    .option('--dry-run', 'validate on the server and print the plan without making changes')
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n  stowage grow orders --to 20Gi\n  stowage grow --selector app=db --by 10Gi --namespace shop\n' +
        '  stowage grow orders --undo\n',
    )
    .action(async (names: string[], flags) => {
      if (flags.undo) {
        const undoRequest = readUndoRequest(names, flags)
        const { runUndo } = await import('./undo.ts')
        return runUndo(undoRequest, createBulkDeps(deps))
      }
      const request = readRequest(names, flags)
      const { runGrow } = await import('./run.ts')
      await runGrow(request, createBulkDeps(deps))
    })
}

export interface GrowFlags extends BulkFlags {
  readonly to?: string
  readonly by?: string
  readonly interval: string
}

const PARALLEL_MAX = 100

export function readUndoRequest(names: readonly string[], flags: GrowFlags): UndoRequest {
  if (flags.to !== undefined || flags.by !== undefined) throw new UsageError('Set --undo without --to or --by.')
  return { ...readBulkFlags(flags, { parallelMax: PARALLEL_MAX }), names, intervalMs: 0 }
}

export function readRequest(names: readonly string[], flags: GrowFlags): GrowRequest {
  const { to, by } = flags
  if ((to === undefined) === (by === undefined)) throw new UsageError('Set either --to or --by, not both.')
  return {
    ...readBulkFlags(flags, { parallelMax: PARALLEL_MAX }),
    names,
    size: to === undefined ? { by: readSize('--by', by!) } : { to: readSize('--to', to) },
    intervalMs: readDuration('--interval', flags.interval, { minMs: 0 }),
  }
}
