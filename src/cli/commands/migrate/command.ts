// `stowage migrate`: flags and help. run.ts runs the command.
import { dns1123SubdomainProblems } from '../../../api/names.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { createBulkDeps } from '../../bulk/deps.ts'
import { type BulkFlags, readBulkFlags, readRate } from '../../bulk/flags.ts'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'
import type { MigrateRequest } from './run.ts'

export const addMigrate: AddCommand = (program, deps) => {
  program
    .command('migrate')
    .summary('move claims to another VolumeAttributesClass at a limited rate, or back')
    .description(
      'Moves all claims of one VolumeAttributesClass to another and waits until each volume has the new attributes. ' +
        'Pauses after too many failures. Run the same command again on any machine to continue. --undo moves back exactly ' +
        'the claims that were moved.',
    )
    .option('--from <class>', 'current class; "" for claims without one')
    .option('--to <class>', 'new class')
    .option('--undo', 'move the claims of an operation back')
    .option('--operation <id>', 'operation to undo, if there are several')
    .option('-n, --namespace <name>', 'namespace of the claims (default: the namespace of the kubeconfig)')
    .option('-A, --all-namespaces', 'move claims in all namespaces')
    .option('-l, --selector <labels>', 'label selector of the claims, such as app=db')
    .option('--rate <count/time>', 'claims to start per second, minute or hour, such as 5/s or 100/m', '5/s')
    .option('--parallel <number>', 'maximum number of claims in progress', '50')
    .option('--max-failures <number>', 'pause after more failures than this', '3')
    .option('--timeout <duration>', 'maximum time for one claim', '10m')
    .option('--dry-run', 'validate on the server and print the plan without making changes')
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n  stowage migrate --from silver --to gold --all-namespaces --rate 5/s\n' +
        '  stowage migrate --undo --operation m-1f2e3d4c --all-namespaces\n',
    )
    .action(async (flags) => {
      const request = readRequest(flags)
      const { runMigrate } = await import('./run.ts')
      await runMigrate(request, createBulkDeps(deps))
    })
}

export interface MigrateFlags extends BulkFlags {
  readonly from?: string
  readonly to?: string
  readonly undo?: boolean
  readonly operation?: string
  readonly allNamespaces?: boolean
  readonly rate: string
}

const PARALLEL_MAX = 1_000

export function readRequest(flags: MigrateFlags): MigrateRequest {
  const { namespace, rate } = flags
  if (namespace !== undefined && flags.allNamespaces) {
    throw new UsageError('Set --namespace or --all-namespaces, not both.')
  }
  return {
    direction: readDirection(flags),
    ...readBulkFlags(flags, { parallelMax: PARALLEL_MAX }),
    selectsAllNamespaces: flags.allNamespaces === true,
    rate,
    intervalMs: readRate('--rate', rate),
  }
}

function readDirection({ from, to, undo, operation }: MigrateFlags): MigrateRequest['direction'] {
  if (from) checkClassName('--from', from)
  if (to) checkClassName('--to', to)
  if (undo) return { is: 'undo', id: operation, from, to }
  if (operation !== undefined) throw new UsageError('--operation requires --undo.')
  if (from === undefined || to === undefined)
    throw new UsageError('Set --from and --to to the current and the new class.')
  if (to === '')
    throw new UsageError('--to is empty: a claim that has a class cannot be changed to have none; specify a class.')
  if (from === to) throw new UsageError(`--from and --to are both ${to}: nothing would change.`)
  return { is: 'forward', from, to }
}

function checkClassName(flag: string, name: string): void {
  const [problem] = dns1123SubdomainProblems(name)
  if (problem) throw new UsageError(`${flag} ${JSON.stringify(name)} is not a class name: ${problem}`)
}
