// `stowage kubeconfig`: flags, help and output. print.ts creates a kubeconfig, merge.ts changes the one of the user.
import { Option } from 'commander'
import { UsageError } from '../../../base/usage-error.ts'
import type { AddCommand } from '../../command.ts'
import { dataDirOption, parseDataDir, pkiDirOption } from '../../flags/common.ts'

export const addKubeconfig: AddCommand = (program, deps) => {
  program
    .command('kubeconfig')
    .summary('print a kubeconfig for the server on this machine, or merge it into that of the user')
    .description(
      'Prints the kubeconfig of a built-in user: admin has full access, viewer can read everything except secrets. With ' +
        '--merge, it adds a context for the server to the kubeconfig of kubectl ($KUBECONFIG or ~/.kube/config) and ' +
        'makes it the current one; "stowage reset" removes it again.',
    )
    .addOption(dataDirOption())
    .addOption(new Option('--user <name>', 'user of the kubeconfig').choices(['admin', 'viewer']).default('admin'))
    .addOption(pkiDirOption())
    .option('--server <url>', 'address of the server (default: the address it last listened on)')
    .option('--merge', 'add a context to the kubeconfig of kubectl instead of printing one')
    .option('--context <name>', 'name of that context (default: stowage, or stowage-viewer)')
    .addHelpText(
      'after',
      '\nExamples:\n  stowage kubeconfig --merge && kubectl get nodes\n  stowage kubeconfig --user viewer > viewer.kubeconfig\n',
    )
    .action(async ({ dataDir: dataDirFlag, pkiDir, user, server, merge, context }) => {
      const { printKubeconfig, readServerCredential } = await import('./print.ts')
      const { clock } = deps
      const dataDir = parseDataDir(dataDirFlag)
      const options = { dataDir, pkiDir, user, server, clock }
      if (context !== undefined && !merge) throw new UsageError('--context requires --merge.')
      if (context === '') throw new UsageError('--context is empty: specify a name, or omit the flag')
      if (!merge) return deps.write(await printKubeconfig(options))
      const { mergeContext } = await import('./merge.ts')
      const { file, context: name } = await mergeContext({
        dataDir,
        context: context ?? (user === 'admin' ? 'stowage' : `stowage-${user}`),
        credential: await readServerCredential(options),
        env: process.env,
        clock,
      })
      deps.write(`Added the context ${JSON.stringify(name)} to ${file}, and made it the current one.\n`)
    })
}
