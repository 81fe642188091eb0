// The shell completion scripts. They pass the words of the command line to `stowage __complete`, which prints one candidate
// per line, or the line `:file` if the shell should complete the name of a file.
import { UsageError } from '../../../base/usage-error.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const

/** The line that stands for the names of files. No command, flag or object has this name. */
export const FILE_DIRECTIVE = ':file'

export function completionScript(shell: string): string {
  switch (shell) {
    case 'bash':
      return BASH_SCRIPT
    case 'zsh':
      return `#compdef stowage\nautoload -U +X bashcompinit && bashcompinit\n${BASH_SCRIPT}`
    case 'fish':
      return FISH_SCRIPT
    default:
      throw new UsageError(`There is no completion for ${JSON.stringify(shell)}; choose one of ${SHELLS.join(', ')}.`)
  }
}

const BASH_SCRIPT = `_stowage() {
  local word="\${COMP_WORDS[COMP_CWORD]}" line
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = '${FILE_DIRECTIVE}' ]; then
      [ "$word" = '=' ] && word=''
      COMPREPLY=($(compgen -f -- "$word"))
    else
      COMPREPLY+=("$line")
    fi
  done < <("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o filenames -F _stowage stowage
`

const FISH_SCRIPT = `function __stowage_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in ($words[1] __complete -- $words[2..] 2>/dev/null)
    if test "$line" = '${FILE_DIRECTIVE}'
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c stowage -f -a '(__stowage_complete)'
`
