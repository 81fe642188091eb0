// `stowage kubeconfig`: flags and help. print.ts creates the output.
import { Option } from 'commander'
import type { AddCommand } from '../../command.ts'
import { dataDirOption, parseDataDir, pkiDirOption } from '../../flags/common.ts'

export const addKubeconfig: AddCommand = (program, deps) => {
  program
    .command('kubeconfig')
    .summary('print a kubeconfig for the server on this machine')
    .description(
      'Prints the kubeconfig of a built-in user: admin has full access, viewer can read everything except secrets.',
    )
    .addOption(dataDirOption())
    .addOption(new Option('--user <name>', 'user of the kubeconfig').choices(['admin', 'viewer']).default('admin'))
    .addOption(pkiDirOption())
    .option('--server <url>', 'address of the server (default: the address it last listened on)')
    .addHelpText('after', '\nExample:\n  stowage kubeconfig --user viewer > viewer.kubeconfig\n')
    .action(async ({ dataDir, pkiDir, user, server }) => {
      const { printKubeconfig } = await import('./print.ts')
      deps.write(await printKubeconfig({ dataDir: parseDataDir(dataDir), pkiDir, user, server, clock: deps.clock }))
    })
}
