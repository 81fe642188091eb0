// `stowage df`: flags and help. run.ts runs the command.
import { Option } from 'commander'
import { UsageError } from '../../../base/usage-error.ts'
import { createBulkDeps } from '../../bulk/deps.ts'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'
import { canShowColors, noColorOption } from '../../output/color.ts'
import { SORT_KEYS } from './sort-rows.ts'

export const addDf: AddCommand = (program, deps) => {
  program
    .command('df')
    .summary('show requested, used and free space of claims, classes, nodes, pools or namespaces')
    .description(
      'Shows the requested, provisioned, used and free space of the claims of any Kubernetes cluster: bytes, inodes, IO with ' +
        'its limits, and growth per day. Usage is known for volumes that a pod has mounted: a Stowage server reports it for ' +
        'the nodes in its process and for those of stowage node; on other servers the command reads it from the kubelets, ' +
        'which requires permission to get nodes/proxy. Unknown amounts are shown as unknown, with the reason. The command only reads.',
    )
    .option('-n, --namespace <name>', 'namespace of the claims (default: the namespace of the kubeconfig)')
    .option('-A, --all-namespaces', 'show claims in all namespaces')
    .addOption(
      new Option('--by <group>', 'objects to show, one per row')
        .choices(['claim', 'class', 'node', 'pool', 'namespace'])
        .default('claim'),
    )
    .addOption(
      new Option('--sort <column>', 'sort by name, by the smallest free space, or by the largest other amount')
        .choices(SORT_KEYS)
        .default('use'),
    )
    .option('--would-grow', 'print what automatic growth would do now with the claims that have a policy')
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addOption(noColorOption())
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  stowage df -n shop\n' +
        '  stowage df --all-namespaces --by pool --sort free\n' +
        '  stowage df -A --by namespace -o json\n' +
        '  stowage df -A --would-grow\n',
    )
    .action(async ({ color, ...flags }) => {
      if (flags.namespace !== undefined && flags.allNamespaces) {
        throw new UsageError('Set --namespace or --all-namespaces, not both.')
      }
      const { runDf } = await import('./run.ts')
      await runDf(flags, { ...createBulkDeps(deps), hasColors: canShowColors(color) })
    })
}
