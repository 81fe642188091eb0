// `stowage capacity-cleanup`: flags and help. run.ts runs the command.
import { type AddCommand, createProcessDeps } from '../../command.ts'
import { addControllerProcessOptions, collectValues, kubeconfigOption } from '../../flags/common.ts'

export const addCapacityCleanup: AddCommand = (program, deps) => {
  const command = program
    .command('capacity-cleanup')
    .summary('delete capacity objects of nodes that no longer run the driver')
    .description(
      'If provisioners on every node publish capacity, the CSIStorageCapacity objects of a removed node remain, and the ' +
        'scheduler still uses them. This command deletes them when the driver has been missing from the CSINode for some ' +
        'time. It needs no driver. `stowage up` and `stowage controllers` do the same for all drivers.',
    )
    .addOption(kubeconfigOption())
    .option(
      '--driver-name <name>',
      'delete only objects of this driver; may be repeated (default: all drivers)',
      collectValues,
    )
    .option('--gone-for <duration>', 'how long the driver must be missing before objects are deleted', '10m')
    .option('--namespace <name>', 'namespace of the objects (default: all)')
  addControllerProcessOptions(command)
    .addHelpText(
      'after',
      '\nExample:\n  stowage capacity-cleanup --kubeconfig ~/.kube/config --driver-name hostpath.csi.k8s.io --gone-for 30m\n',
    )
    .action(async (flags) => {
      const { runCapacityCleanup } = await import('./run.ts')
      await runCapacityCleanup(flags, await createProcessDeps(deps, flags))
    })
}
