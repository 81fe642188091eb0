// The completion scripts of shells and of kubectl. They pass the words of the command line to `stowage __complete`, which prints
// one candidate per line, or the line `:file` if the shell should complete a file's name.
import { UsageError } from '../../../base/usage-error.ts'

export const SCRIPT_NAMES = ['bash', 'zsh', 'fish', 'kubectl'] as const

/** The line that makes the shell complete file names. No command, flag or object has this name. */
export const FILE_DIRECTIVE = ':file'

export function completionScript(name: string): string {
  switch (name) {
    case 'bash':
      return BASH_SCRIPT
    case 'zsh':
      return `#compdef stowage\nautoload -U +X bashcompinit && bashcompinit\n${BASH_SCRIPT}`
    case 'fish':
      return FISH_SCRIPT
    case 'kubectl':
      return KUBECTL_SCRIPT
    default:
      throw new UsageError(
        `There is no completion for ${JSON.stringify(name)}; choose one of ${SCRIPT_NAMES.join(', ')}.`,
      )
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

/** kubectl runs the program kubectl_complete-stowage. Its last line is a directive of cobra: 0 for files, 4 for none. */
const KUBECTL_SCRIPT = `#!/bin/sh
lines=$(kubectl-stowage __complete -- "$@" 2>/dev/null)
if [ "$lines" = '${FILE_DIRECTIVE}' ]; then
  echo ':0'
else
  printf '%s\\n:4\\n' "$lines"
fi
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
