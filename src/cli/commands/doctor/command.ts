// `stowage doctor`: flags and help. run.ts runs the command.
import type { AddCommand } from '../../command.ts'
import { dataDirOption, kubeconfigOption, outputOption } from '../../flags/common.ts'
import { componentOption, featuresOption } from '../../flags/component.ts'
import { canShowColors, noColorOption } from '../../output/color.ts'

export const addDoctor: AddCommand = (program, deps) => {
  program
    .command('doctor')
    .summary('check a cluster for problems with rights, drivers, topology, leases and certificates')
    .description(
      'Checks any Kubernetes cluster for problems that keep volumes from being provisioned, attached or changed, and prints remedies. ' +
        'It changes nothing, and requires no rights: objects that it may not read are reported as unknown. Rights are checked ' +
        'with --component, the capabilities of a CSI driver with --csi-address.',
    )
    .option('--driver <name>', 'check only this CSI driver (default: the one of --csi-address, or all)')
    .option('--csi-address <path>', 'socket of the CSI driver, whose capabilities are compared with the classes')
    .addOption(componentOption('check the rights of this component'))
    .addOption(featuresOption())
    .option(
      '--as <user>',
      'check the rights of this user, such as system:serviceaccount:csi:driver (default: your own)',
    )
    .option('--namespace <name>', 'namespace of the component (default: that of its service account, or kube-system)')
    .addOption(kubeconfigOption())
    .addOption(dataDirOption())
    .addOption(outputOption())
    .addOption(noColorOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage doctor --csi-address /run/csi/socket\n' +
        '  stowage doctor --component sidecar --as system:serviceaccount:csi:driver -o json\n',
    )
    .action(async ({ color, ...flags }) => {
      const { runDoctor } = await import('./run.ts')
      await runDoctor(flags, { ...deps, env: process.env, hasColors: canShowColors(color) })
    })
}
