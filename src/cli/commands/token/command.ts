// `stowage token`: flags, help and output. tokens.ts has the code of the actions.
import { Argument } from 'commander'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'

export const addToken: AddCommand = (program, deps) => {
  program
    .command('token')
    .summary('create, list and delete the tokens with which nodes join')
    .description(
      'Manages bootstrap tokens: Secrets of the namespace kube-system, each for one node, with which "stowage node --join" gets ' +
        'the certificate of this node. "create" prints the command to run on the node. "list" prints no secrets.',
    )
    .addArgument(new Argument('<action>', 'the action').choices(['create', 'list', 'delete']))
    .argument('[id]', 'id of the token to delete: its part before the dot')
    .option('--node <name>', 'name of the node that joins with the new token')
    .option('--ttl <duration>', 'time until the new token expires', '24h')
    .option('--description <text>', 'note about the new token')
    .option('--dry-run', 'validate on the server, and create or delete nothing')
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n  stowage token create --node worker-1 --ttl 1h\n  stowage token list\n  stowage token delete abcdef\n',
    )
    .action(async (action: 'create' | 'list' | 'delete', id: string | undefined, flags) => {
      const { createToken, deleteToken, listTokens } = await import('./tokens.ts')
      if (action === 'create') deps.write(await createToken(flags, deps))
      else if (action === 'list') deps.write(await listTokens(flags, deps))
      else deps.write(await deleteToken(id, flags, deps))
    })
}
