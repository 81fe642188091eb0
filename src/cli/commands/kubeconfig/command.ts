// `stowage kubeconfig`: flags, help and output. print.ts creates a kubeconfig, merge.ts changes the user's.
import { Option } from 'commander'
import { UsageError } from '../../../base/usage-error.ts'
import type { AddCommand } from '../../command.ts'
import { dataDirOption, outputOption, parseDataDir, pkiDirOption } from '../../flags/common.ts'
import { formatOutput } from '../../output/format-output.ts'

export const addKubeconfig: AddCommand = (program, deps) => {
  program
    .command('kubeconfig')
    .summary('print a kubeconfig for the server on this machine, or merge it into the kubeconfig of the user')
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
    .option('--dry-run', 'with --merge: print what would be added, and change nothing')
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n  stowage kubeconfig --merge && kubectl get nodes\n  stowage kubeconfig --user viewer > viewer.kubeconfig\n',
    )
    .action(async ({ dataDir: dataDirFlag, pkiDir, user, server, merge, context, dryRun, output }) => {
      const { printKubeconfig, readServerCredential } = await import('./print.ts')
      const { clock } = deps
      const dataDir = parseDataDir(dataDirFlag)
      const options = { dataDir, pkiDir, user, server, clock }
      if (context !== undefined && !merge) throw new UsageError('--context requires --merge.')
      if (dryRun && !merge) throw new UsageError('--dry-run requires --merge: without it nothing is changed.')
      if (context === '') throw new UsageError('--context is empty: specify a name, or omit the flag')
      if (!merge) return deps.write(await printKubeconfig(options, output))
      const { mergeContext } = await import('./merge.ts')
      const { file, context: name } = await mergeContext({
        dataDir,
        context: context ?? (user === 'admin' ? 'stowage' : `stowage-${user}`),
        credential: await readServerCredential(options),
        env: process.env,
        clock,
        isDryRun: dryRun === true,
      })
      const text = () =>
        dryRun
          ? `Would add the context ${JSON.stringify(name)} to ${file}, and make it the current one.\n`
          : `Added the context ${JSON.stringify(name)} to ${file}, and made it the current one.\n`
      deps.write(await formatOutput(output, { file, context: name, dryRun: dryRun === true }, text))
    })
}
