// Generates shell completion scripts from the commands and flags of the program.
import type { Command } from 'commander'
import { UsageError } from '../../../base/usage-error.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const

export function completionScript(program: Command, shell: string): string {
  const commands = program.commands.map((command) => ({
    name: command.name(),
    summary: command.summary(),
    flags: command.options.map((option) => option.long).filter((flag): flag is string => typeof flag === 'string'),
  }))
  switch (shell) {
    case 'bash':
      return bashScript(commands)
    case 'zsh':
      return `#compdef stowage\nautoload -U +X bashcompinit && bashcompinit\n${bashScript(commands)}`
    case 'fish':
      return fishScript(commands)
    default:
      throw new UsageError(`There is no completion for ${JSON.stringify(shell)}; choose one of ${SHELLS.join(', ')}.`)
  }
}

interface CompletedCommand {
  readonly name: string
  readonly summary: string
  readonly flags: readonly string[]
}

const bashScript = (commands: readonly CompletedCommand[]): string => `_stowage() {
  local word="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(' ')} help --help --version" -- "$word"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${commands.map(({ name, flags }) => `    ${name}) COMPREPLY=($(compgen -W "${[...flags, '--help'].join(' ')}" -- "$word")) ;;`).join('\n')}
  esac
}
complete -o default -F _stowage stowage
`

const fishScript = (commands: readonly CompletedCommand[]): string =>
  `${[
    'complete -c stowage -f',
    ...commands.map(
      ({ name, summary }) =>
        `complete -c stowage -n __fish_use_subcommand -a ${name} -d '${summary.replaceAll("'", '')}'`,
    ),
    ...commands.flatMap(({ name, flags }) =>
      flags.map((flag) => `complete -c stowage -n '__fish_seen_subcommand_from ${name}' -l ${flag.slice(2)}`),
    ),
  ].join('\n')}\n`
