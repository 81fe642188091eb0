// `stowage rbac print`: flags and help. print.ts creates the output.
import type { AddCommand } from '../../command.ts'
import { outputOption } from '../../flags/common.ts'
import { componentOption, featuresOption } from '../../flags/component.ts'

export const addRbac: AddCommand = (program, deps) => {
  const rbac = program
    .command('rbac')
    .summary('print the roles that components need')
    .description('Prints the roles that components need.')
    .helpCommand(false)
  rbac
    .command('print')
    .summary('print the roles of a component as YAML or JSON')
    .description(
      'Prints the smallest roles with which a component does its work: a ClusterRole, and a Role in each namespace whose ' +
        'objects it needs. Without the rules of a feature, its requests are denied, and the component logs this.',
    )
    .addOption(componentOption('the component').makeOptionMandatory())
    .addOption(featuresOption())
    .option('--namespace <name>', 'namespace in which the component runs', 'kube-system')
    .option('--name <name>', 'name of the roles and bindings (default: stowage-COMPONENT)')
    .option('--service-account <name>', 'also print this service account and the bindings of the roles to it')
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExample:\n' +
        '  stowage rbac print --component sidecar --features leader-election,topology --namespace csi \\\n' +
        '    --service-account csi-driver | kubectl apply -f -\n',
    )
    .action(async (flags) => {
      const { printRoles } = await import('./print.ts')
      deps.write(printRoles(flags, flags.output))
    })
}
