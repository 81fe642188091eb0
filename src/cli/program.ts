// Creates the command line program with its commands. A new command is a folder in commands/ and a line in COMMANDS.
import { Command } from 'commander'
import { stowageVersion } from '../apiserver/version.ts'
import type { AddCommand, ProgramDeps } from './command.ts'
import { addBackup } from './commands/backup/command.ts'
import { addCapacity } from './commands/capacity/command.ts'
import { addCapacityCleanup } from './commands/capacity-cleanup/command.ts'
import { addCompletion } from './commands/completion/command.ts'
import { addConsole } from './commands/console/command.ts'
import { addControllers } from './commands/controllers/command.ts'
import { addDf } from './commands/df/command.ts'
import { addDoctor } from './commands/doctor/command.ts'
import { addDriver } from './commands/driver/command.ts'
import { addEncryption } from './commands/encryption/command.ts'
import { addGrow } from './commands/grow/command.ts'
import { addKubeconfig } from './commands/kubeconfig/command.ts'
import { addLeaks } from './commands/leaks/command.ts'
import { addMigrate } from './commands/migrate/command.ts'
import { addNode } from './commands/node/command.ts'
import { addProvisioner } from './commands/provisioner/command.ts'
import { addRbac } from './commands/rbac/command.ts'
import { addReset } from './commands/reset/command.ts'
import { addResizer } from './commands/resizer/command.ts'
import { addRestore } from './commands/restore/command.ts'
import { addRetry } from './commands/retry/command.ts'
import { addScheduler } from './commands/scheduler/command.ts'
import { addServer } from './commands/server/command.ts'
import { addSidecar } from './commands/sidecar/command.ts'
import { addSimulate } from './commands/simulate/command.ts'
import { addStatus } from './commands/status/command.ts'
import { addStop } from './commands/stop/command.ts'
import { addStore } from './commands/store/command.ts'
import { addTimeline } from './commands/timeline/command.ts'
import { addToken } from './commands/token/command.ts'
import { addUnused } from './commands/unused/command.ts'
import { addUp } from './commands/up/command.ts'
import { addVerify } from './commands/verify/command.ts'
import { addVersion } from './commands/version/command.ts'
import { addWhy } from './commands/why/command.ts'
import { exitCodesOf, formatExitCodes } from './exit-codes.ts'
import { noColorOption } from './output/color.ts'

/** The commands in the order of `stowage --help`. */
const COMMANDS: readonly AddCommand[] = [
  addUp,
  addServer,
  addConsole,
  addStatus,
  addWhy,
  addSimulate,
  addTimeline,
  addDoctor,
  addDf,
  addUnused,
  addLeaks,
  addStop,
  addReset,
  addDriver,
  addVerify,
  addSidecar,
  addProvisioner,
  addResizer,
  addNode,
  addToken,
  addGrow,
  addMigrate,
  addRetry,
  addBackup,
  addRestore,
  addStore,
  addEncryption,
  addControllers,
  addScheduler,
  addCapacityCleanup,
  addCapacity,
  addKubeconfig,
  addRbac,
  addVersion,
  addCompletion,
]

export function createProgram(deps: ProgramDeps): Command {
  const program = new Command('stowage')
    .description('A storage control plane with the Kubernetes API.')
    .version(stowageVersion, '-V, --version', 'print the version')
    .helpCommand(false)
    .enablePositionalOptions() // flags after `stowage node drain` belong to `drain`, not to the agent `stowage node`
    .showHelpAfterError('(stowage --help lists the commands)')
    .exitOverride()
  for (const add of COMMANDS) add(program, deps)
  for (const command of listCommandsBelow(program)) addConventions(command)
  program
    .command('help')
    .summary('print the help of a command')
    .description('Prints the help of a command, or the list of commands.')
    .argument('[command]', 'name of the command')
    .action(async (name?: string) => {
      if (name === undefined) return program.outputHelp()
      const command = program.commands.find((candidate) => candidate.name() === name)
      if (command) return command.outputHelp()
      await program.parseAsync([name], { from: 'user' }) // prints that the command is unknown, and the most similar one
    })
  return program
}

/** Returns the commands below a command at all levels: `stowage rbac` and `stowage rbac print`. */
export const listCommandsBelow = (command: Command): Command[] =>
  command.commands.flatMap((child) => [child, ...listCommandsBelow(child)])

/**
 * Adds the common parts of commands: the hint after an error, --no-color if the command prints a result, and the exit codes in the
 * help unless it only groups other commands.
 */
function addConventions(command: Command): void {
  command.showHelpAfterError(`(${fullName(command)} --help lists its flags)`)
  const hasFlag = (flag: string) => command.options.some(({ long }) => long === flag)
  if (hasFlag('--output') && !hasFlag('--no-color')) command.addOption(noColorOption())
  const name = fullName(command).slice('stowage '.length)
  const isGroup = command.commands.length > 0 && command.registeredArguments.length + command.options.length === 0
  if (!isGroup) command.addHelpText('after', () => formatExitCodes(exitCodesOf(name)))
}

const fullName = (command: Command): string =>
  command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name()
