// `stowage completion` and the command that its scripts call: arguments, help and output.
import { createBulkDeps } from '../../bulk/deps.ts'
import type { AddCommand } from '../../command.ts'
import { completionScript, FILE_DIRECTIVE, SCRIPT_NAMES } from './script.ts'

export const addCompletion: AddCommand = (program, deps) => {
  program
    .command('completion')
    .summary('print a completion script for a shell or for kubectl')
    .description(
      'Prints a script that completes commands, flags, their values, and names of objects in the cluster. The script for kubectl completes ' +
        '`kubectl stowage`: save it on the PATH as an executable with the name kubectl_complete-stowage.',
    )
    .argument('<shell>', SCRIPT_NAMES.join(', '))
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  source <(stowage completion bash)\n' +
        '  stowage completion kubectl > ~/.local/bin/kubectl_complete-stowage\n',
    )
    .action((shell: string) => deps.write(completionScript(shell)))
  program
    .command('__complete', { hidden: true })
    .argument('[words...]', 'words of the command line after `stowage`; the last one is incomplete')
    .action(async (words: string[]) => {
      const { complete } = await import('./complete.ts')
      const { readObjectNames } = await import('./object-names.ts')
      const completion = await complete(program, {
        words,
        objectNames: (kubeconfig) => readObjectNames(kubeconfig, createBulkDeps(deps)),
      })
      const lines = completion.is === 'file' ? [FILE_DIRECTIVE] : completion.values
      deps.write(lines.map((line) => `${line}\n`).join(''))
    })
}
