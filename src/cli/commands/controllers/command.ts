// `stowage controllers`: flags and help. run.ts runs the command.
import { type AddCommand, createProcessDeps } from '../../command.ts'
import { changeBudgetOption, changeCooldownOption } from '../../flags/change-throttle.ts'
import {
  addControllerProcessOptions,
  capacityGoneForOption,
  driverSocketOption,
  kubeconfigOption,
  lostVolumePolicyOption,
  nodeMonitorGraceOption,
} from '../../flags/common.ts'

export const addControllers: AddCommand = (program, deps) => {
  const command = program
    .command('controllers')
    .summary('run the controllers against any Kubernetes API server')
    .description(
      'Runs the controllers of `stowage up` in a separate process. In a cluster with a kube-controller-manager, leave out ' +
        'the controllers that it already runs.',
    )
    .addOption(kubeconfigOption())
    .option(
      '--controllers <names>',
      'controllers to run, separated by commas (default: all except scheduler and auto-growing: attaching,binding,capacity-cleanup,ephemeral,garbage,lost-volumes,namespaces,node-lifecycle,node-topology,protection,quota,root-ca,service-accounts,stateful-sets)',
    )
    .option('--feature-gates <gates>', 'enable or disable features, e.g. VolumeAttributesClass=false', '')
    .addOption(driverSocketOption())
    .addOption(changeBudgetOption())
    .addOption(changeCooldownOption())
    .addOption(capacityGoneForOption())
    .addOption(nodeMonitorGraceOption())
    .addOption(lostVolumePolicyOption())
    .option(
      '--leader-election-name <name>',
      'name of the lease in kube-system; processes with different controllers or drivers need different ones (default: stowage-controllers)',
    )
  addControllerProcessOptions(command)
    .addHelpText(
      'after',
      '\nExample:\n  stowage controllers --kubeconfig ~/.kube/config --controllers binding,protection\n',
    )
    .action(async (flags) => {
      const { runRemoteControllers } = await import('./run.ts')
      await runRemoteControllers(flags, await createProcessDeps(deps, flags))
    })
}
