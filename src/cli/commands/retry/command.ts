// `stowage retry`: flags and help. run.ts runs the command.
import { createBulkDeps } from '../../bulk/deps.ts'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'

export const addRetry: AddCommand = (program, deps) => {
  program
    .command('retry')
    .summary('retry the waiting operations of an object now')
    .description(
      'Retries the waiting operations of an object, such as the provisioning of a claim, without further delay, and ' +
        'resets their backoff. It sets the annotation stowage.dev/retry-requested on the object, which Stowage components ' +
        'act on with any API server, and needs permission to patch the object.',
    )
    .argument('<object>', 'the object as KIND/NAME: pvc, pv, pod, va (VolumeAttachment), node or vac')
    .option('-n, --namespace <name>', 'namespace of the object (default: the namespace of the kubeconfig)')
    .option('--dry-run', 'validate on the server and print the operations without requesting a retry')
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n  stowage retry pvc/orders --namespace shop\n  stowage retry pv/pvc-7f3a --dry-run\n',
    )
    .action(async (object: string, flags) => {
      const { readRetryRequest, runRetry } = await import('./run.ts')
      await runRetry(readRetryRequest(object, flags), createBulkDeps(deps))
    })
}
