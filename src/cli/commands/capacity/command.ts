// `stowage capacity templates publish`, `list` and `remove`: flags, help and output. templates.ts has the code of the actions.
import type { Command } from 'commander'
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'
import { noColorOption } from '../../output/color.ts'

const NAMESPACE = 'kube-system'

export const addCapacity: AddCommand = (program, deps) => {
  const templates = program
    .command('capacity')
    .summary('publish storage capacity for node groups that have no node yet')
    .description('Manages storage capacity that no driver reports.')
    .command('templates')
    .summary('publish, list and remove the capacity of node groups')
    .description(
      'Manages CSIStorageCapacity objects for node groups that have no node yet. A cluster autoscaler that simulates a node of ' +
        'the group finds them by its topology label, and so knows that pods with volumes would fit on a new node.',
    )
  addShared(
    templates
      .command('publish')
      .summary('create or update the capacity of a node group')
      .description(
        'Creates or updates the capacity objects of a node group, from a file or from an existing node without its volumes, and ' +
          'deletes those that the group no longer has. Prints the labels that the node template of the autoscaler needs.',
      )
      .option('--node-group <file>', 'Node of the group, with the CSIStorageCapacity objects of an empty node')
      .option('--group <name>', 'name of the group, with --like')
      .option('--like <node>', 'existing node of the group')
      .option('--namespace <name>', 'namespace of the objects', NAMESPACE)
      .option('--dry-run', 'print what would change, and change nothing')
      .addHelpText(
        'after',
        '\nExamples:\n' +
          '  stowage capacity templates publish --group workers --like node-1 --dry-run\n' +
          '  stowage capacity templates publish --node-group workers.yaml\n',
      ),
  ).action(async (flags) => {
    const { publishTemplates } = await import('./templates.ts')
    deps.write(await publishTemplates(flags, { ...deps, env: process.env }))
  })
  addShared(
    templates
      .command('list')
      .summary('list the capacity of node groups')
      .description('Lists the capacity objects that this command has published, in all namespaces.')
      .addHelpText('after', '\nExample:\n  stowage capacity templates list\n'),
  ).action(async (flags) => {
    const { listTemplates } = await import('./templates.ts')
    deps.write(await listTemplates(flags, { ...deps, env: process.env }))
  })
  addShared(
    templates
      .command('remove')
      .summary('delete the capacity of a node group')
      .description('Deletes the capacity objects that this command has published for a node group, in all namespaces.')
      .argument('<group>', 'name of the node group')
      .option('--dry-run', 'print what would be deleted, and delete nothing')
      .addHelpText('after', '\nExample:\n  stowage capacity templates remove workers\n'),
  ).action(async (group: string, flags) => {
    const { removeTemplates } = await import('./templates.ts')
    deps.write(await removeTemplates(group, flags, { ...deps, env: process.env }))
  })
}

const addShared = (command: Command): Command =>
  command.addOption(kubeconfigOption()).addOption(outputOption()).addOption(noColorOption())
