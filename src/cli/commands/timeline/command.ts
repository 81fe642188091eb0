// `stowage timeline`: flags and help. run.ts runs the command.
import type { AddCommand } from '../../command.ts'
import { kubeconfigOption, outputOption } from '../../flags/common.ts'

export const addTimeline: AddCommand = (program, deps) => {
  program
    .command('timeline')
    .summary('show what happened to a claim or volume, by whom and how long it took')
    .description(
      'Prints the history of a claim or volume: its creation, each change, each attempt of a component and each driver ' +
        'call with its duration and result, also after the objects are deleted. A Stowage server records it in its journal. On another ' +
        'API server it is reconstructed from the events, conditions and managed fields of existing objects, and marked as such.',
    )
    .argument('<object>', 'kind and name: pvc/NAME or pv/NAME')
    .option('-n, --namespace <name>', 'namespace of the claim (default: the namespace of the kubeconfig)')
    .option('--uid <uid>', 'uid of the object, if several had the name (default: the newest)')
    .option('--svg <file>', 'also write a Gantt chart as an SVG picture to the file')
    .addOption(kubeconfigOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      '\nExamples:\n' + '  stowage timeline pvc/data -n shop\n' + '  stowage timeline pv/pvc-7f3a --svg timeline.svg\n',
    )
    .action(async (object: string, flags) => {
      const { runTimeline } = await import('./run.ts')
      await runTimeline(object, flags, { ...deps, env: process.env })
    })
}
