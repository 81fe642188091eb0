// `stowage scheduler`: flags and help. run.ts runs the command.
import { type AddCommand, createProcessDeps } from '../../command.ts'
import {
  addControllerProcessOptions,
  capacityReservationOption,
  kubeconfigOption,
  placementOption,
} from '../../flags/common.ts'

export const addScheduler: AddCommand = (program, deps) => {
  const command = program
    .command('scheduler')
    .summary('schedule pods by their volumes with any Kubernetes API server')
    .description('Runs the scheduler of `stowage up` in a separate process.')
    .addOption(kubeconfigOption())
    .option(
      '--scheduler-names <names>',
      'values of spec.schedulerName to schedule pods for, separated by commas (default: default-scheduler,stowage-scheduler)',
    )
    .addOption(capacityReservationOption())
    .addOption(placementOption())
    .option('--bind-timeout-seconds <seconds>', 'how long a pod waits for its volumes before it is rescheduled', '600')
    .option('--feature-gates <gates>', 'enable or disable features, e.g. CSIStorageCapacity=false', '')
  addControllerProcessOptions(command)
    .addHelpText(
      'after',
      '\nExample:\n  stowage scheduler --kubeconfig ~/.kube/config --scheduler-names stowage-scheduler\n',
    )
    .action(async (flags) => {
      const { runScheduler } = await import('./run.ts')
      await runScheduler(flags, await createProcessDeps(deps, flags))
    })
}
