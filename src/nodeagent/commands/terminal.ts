// Gives a command a pseudoterminal. Node.js cannot create one, so script(1) of util-linux does: it starts the command as leader
// of a session on a new terminal, and copies between the terminal and its own stdin and stdout. stty(1) sets the size.
import { execFile } from 'node:child_process'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { findTool } from './tools.ts'

export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

interface TerminalCommand {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** Editors need TERM. Container runtimes set the same value. */
const DEFAULT_TERM = 'xterm'

/** Returns the command with a terminal. If it has a pipe as descriptor 3, readTerminalPath can read from it. */
export function buildTerminalCommand(
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
  size?: TerminalSize,
): TerminalCommand {
  // script(1) disables the echo if its stdin is not a terminal, and runs the command with $SHELL.
  const restoreShell = env.SHELL === undefined ? 'unset SHELL' : `SHELL=${quote(env.SHELL)}`
  const command = `{ ${findTool('tty')} >&3; exec 3>&-; } 2>/dev/null; ${findTool('stty')} echo ${size ? sizeArguments(size).join(' ') : ''}; ${restoreShell}; exec ${argv.map(quote).join(' ')}`
  return {
    argv: [findTool('script'), '--quiet', '--return', '--flush', '--command', command, '/dev/null'],
    env: { TERM: DEFAULT_TERM, ...env, SHELL: '/bin/sh' },
  }
}

/** Returns the path of the terminal, or undefined if it could not be created. */
export function readTerminalPath(pipe: Readable): Promise<string | undefined> {
  let text = ''
  return new Promise((resolve) => {
    pipe.setEncoding('utf8')
    pipe.on('data', (chunk: string) => {
      text += chunk
      if (text.includes('\n')) resolve(text.trim())
    })
    pipe.on('error', () => resolve(undefined))
    pipe.on('close', () => resolve(undefined))
  })
}

export async function resizeTerminal(path: string, size: TerminalSize): Promise<void> {
  if (!/^\/dev\/pts\/\d+$/.test(path)) return
  const args = ['-F', path, ...sizeArguments(size)]
  // The terminal may already be closed.
  await promisify(execFile)(findTool('stty'), args, { cwd: '/', env: {} }).catch(() => {})
}

const sizeArguments = ({ columns, rows }: TerminalSize): string[] => ['rows', String(rows), 'cols', String(columns)]

const quote = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
