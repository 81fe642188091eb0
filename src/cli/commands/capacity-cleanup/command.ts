// `stowage capacity-cleanup`: flags and help. What runs is run.ts.
import { type AddCommand, processDeps } from '../../command.ts'
import { addRemoteOptions, collect, kubeconfigOption } from '../../flags/common.ts'

export const addCapacityCleanup: AddCommand = (program, deps) => {
  const command = program
    .command('capacity-cleanup')
    .summary('delete capacity objects of nodes that no longer run the driver')
    .description(
      'Where a provisioner on every node publishes capacity, a removed node leaves its CSIStorageCapacity objects ' +
        'behind, and the scheduler still counts them. This deletes them when the driver has been missing from the CSINode ' +
        'for a while. It needs no driver. `stowage up` and `stowage controllers` do the same for all drivers.',
    )
    .addOption(kubeconfigOption())
    .option('--driver-name <name>', 'only objects of this driver; may be repeated (default: all drivers)', collect)
    .option('--gone-for <duration>', 'how long the driver must have been missing', '10m')
    .option('--namespace <name>', 'namespace of the objects (default: all)')
  addRemoteOptions(command)
    .addHelpText(
      'after',
      '\nExample:\n  stowage capacity-cleanup --kubeconfig ~/.kube/config --driver-name hostpath.csi.k8s.io --gone-for 30m\n',
    )
    .action(async (flags) => {
      const { runCapacityCleanup } = await import('./run.ts')
      await runCapacityCleanup(flags, await processDeps(deps, flags.logLevel))
    })
}
