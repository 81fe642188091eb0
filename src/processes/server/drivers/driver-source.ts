// Describes a driver given with `stowage up --driver`: a socket, or a command that starts the driver. Both may contain
// placeholders; with {node} there is one driver per node. ../../../cli/commands/up/driver-flag.ts parses the flag.
import { basename } from 'node:path'
import { quoteShellWord } from '../../../base/shell-word.ts'

export type DriverSource =
  /** `path` is absolute and may contain {node}. */
  | { readonly is: 'socket'; readonly path: string }
  /** A command line for the shell, which may contain {socket}, {node} and {dir}. */
  | { readonly is: 'command'; readonly command: string }

/** Values of the placeholders. */
export interface PlaceholderValues {
  readonly socket: string
  readonly node: string
  /** Directory for the data of the driver on this node. */
  readonly dir: string
}

/** Whether each node has its own driver. Otherwise one driver runs on the first node. */
export const isPerNode = (source: DriverSource): boolean => describeSource(source).includes('{node}')

export const describeSource = (source: DriverSource): string => (source.is === 'socket' ? source.path : source.command)

/** Replaces the placeholders. Keeps other braces, because commands may contain JSON. */
export function expandCommand(command: string, values: PlaceholderValues): string {
  return command.replaceAll(/\{(socket|node|dir)\}/g, (_, name: keyof PlaceholderValues) =>
    quoteShellWord(values[name]),
  )
}

export const expandSocket = (path: string, node: string): string => path.replaceAll('{node}', node)

/** Programs that start another program, whose name identifies the driver better. */
const LAUNCHERS = new Set([
  'env',
  'exec',
  'nice',
  'sudo',
  'sh',
  'bash',
  'node',
  'python',
  'python3',
  'go',
  'run',
  'npx',
])
const NAME_LENGTH_MAX = 24

/**
 * Returns a directory name for each command: the name of its program, such as `hostpathplugin`, so that drivers that share a data
 * directory do not mix their data. Further commands of the same program get a number.
 */
export function nameCommands(commands: readonly string[]): string[] {
  const counts = new Map<string, number>()
  return commands.map((command) => {
    const name = findProgramName(command)
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    return count === 1 ? name : `${name}-${count}`
  })
}

function findProgramName(command: string): string {
  const words = command.split(/[\s;&|()'"]+/).filter((word) => word !== '' && !/^-|^\w+=|[{}]/.test(word))
  const program = words.find((word) => !LAUNCHERS.has(basename(word))) ?? words[0] ?? ''
  const name = basename(program)
    .replace(/\.(js|mjs|cjs|ts|py|sh)$/, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, NAME_LENGTH_MAX)
    .replaceAll(/^-+|-+$/g, '')
  return name || 'driver'
}
