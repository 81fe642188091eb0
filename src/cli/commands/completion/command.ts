// `stowage completion`: arguments, help and output. script.ts generates the script.
import type { AddCommand } from '../../command.ts'
import { completionScript, SHELLS } from './script.ts'

export const addCompletion: AddCommand = (program, deps) => {
  program
    .command('completion')
    .summary('print a shell completion script')
    .description('Prints a script that completes commands and flags.')
    .argument('<shell>', SHELLS.join(', '))
    .addHelpText('after', '\nExample:\n  source <(stowage completion bash)\n')
    .action((shell: string) => deps.write(completionScript(program, shell)))
}
