// `stowage leaks`: flags and help. run.ts runs the command.
import { UsageError } from '../../../base/usage-error.ts'
import type { AddCommand } from '../../command.ts'
import {
  collectValues,
  dataDirOption,
  kubeconfigOption,
  outputOption,
  parseDataDir,
  parseDurationFlag,
} from '../../flags/common.ts'
import { canShowColors, noColorOption } from '../../output/color.ts'

export const addLeaks: AddCommand = (program, deps) => {
  program
    .command('leaks')
    .summary('compare the volumes of a CSI driver with PVs, and adopt or delete those that no PV has')
    .description(
      'Asks CSI drivers for their volumes and snapshots, and compares them with PVs, claims, intents of provisioners, ' +
        'attachments and snapshot contents of any Kubernetes cluster: volumes without a PV, PVs without a volume, volumes with ' +
        'two PVs, wrong sizes and attributes, attachments that only the driver or only the API server has, and on a node also mounts, ' +
        'loop devices and files of the local driver without a volume. Without --adopt or --delete the command only reads. Both ' +
        'flags leave storage that an operation in progress may own, and check each volume or snapshot again before changing it.',
    )
    .argument('[handles...]', 'with --adopt or --delete, only these volumes or snapshots')
    .option('--driver <name>', 'name of the CSI driver (default: all that are found on this machine)')
    .option(
      '--csi-address <socket>',
      'socket of a CSI driver with its controller service; may be repeated',
      collectValues,
    )
    .addOption(dataDirOption())
    .option('--adopt', 'write a PV with the reclaim policy Retain for each volume without one')
    .option('--delete', 'delete volumes without a PV and snapshots without a content')
    .option('--class <name>', 'with --adopt, class of the PVs (default: the only class of the driver)')
    .option(
      '--claim <namespace/name>',
      'with --adopt and one handle, claim for which the PV is reserved (default: default/NAME with the name of the PV)',
    )
    .option('--grace-period <duration>', 'leave volumes and snapshots that are younger than this', '2m')
    .option('--yes', 'change without asking')
    .option('--dry-run', 'print what would be adopted or deleted, and change nothing')
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addOption(noColorOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage leaks\n' +
        '  stowage leaks --csi-address /run/csi/csi.sock --delete --dry-run\n' +
        '  stowage leaks --driver local.csi.stowage.dev --adopt v-a2b3 --claim shop/orders\n',
    )
    .action(
      async (
        handles: string[],
        { color, csiAddress, dataDir, gracePeriod, adopt, class: className, claim, ...flags },
      ) => {
        const action = readAction({ adopt, delete: flags.delete })
        if (handles.length > 0 && !action)
          throw new UsageError('Handles select what --adopt or --delete changes: set one of them.')
        if (action !== 'adopt' && (className !== undefined || claim !== undefined))
          throw new UsageError('Set --class and --claim only with --adopt.')
        if (claim !== undefined && handles.length !== 1) throw new UsageError('Set --claim with exactly one handle.')
        if (!action && (flags.yes || flags.dryRun))
          throw new UsageError('Set --yes and --dry-run only with --adopt or --delete.')
        const { runLeaks } = await import('./run.ts')
        await runLeaks(
          {
            kubeconfig: flags.kubeconfig,
            driver: flags.driver,
            output: flags.output,
            dryRun: flags.dryRun === true,
            yes: flags.yes === true,
            addresses: csiAddress ?? [],
            dataDir: parseDataDir(dataDir),
            handles,
            gracePeriodMs: parseDurationFlag('--grace-period', gracePeriod),
            ...(action ? { action } : {}),
            ...(className === undefined ? {} : { className }),
            ...(claim === undefined ? {} : { claim: parseClaim(claim) }),
          },
          {
            ...deps,
            env: process.env,
            hasColors: canShowColors(color),
            writeProgress: (text) => void process.stderr.write(text),
          },
        )
      },
    )
}

function readAction(flags: { readonly adopt?: boolean; readonly delete?: boolean }): 'adopt' | 'delete' | undefined {
  if (flags.adopt && flags.delete) throw new UsageError('Set --adopt or --delete, not both.')
  if (flags.adopt) return 'adopt'
  return flags.delete ? 'delete' : undefined
}

function parseClaim(text: string): { namespace: string; name: string } {
  const [namespace, name, ...rest] = text.split('/')
  if (!namespace || !name || rest.length > 0)
    throw new UsageError(`--claim ${JSON.stringify(text)}: expected a namespace and a name, such as shop/orders`)
  return { namespace, name }
}
