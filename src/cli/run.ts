// Runs one command and returns its exit code: 0 for success, 1 for a failure, 2 for a usage error, 130 if interrupted. Errors
// are printed as one sentence, without a stack trace.
import { CommanderError } from 'commander'
import { UsageError } from '../base/usage-error.ts'
import type { ProgramDeps } from './command.ts'
import { ExitError } from './flags/common.ts'
import { createProgram } from './program.ts'

export interface CommandLineDeps extends ProgramDeps {
  /** Writes to standard error. */
  writeError(text: string): void
}

export async function runCommandLine(argv: readonly string[], deps: CommandLineDeps): Promise<number> {
  const program = createProgram(deps)
  for (const command of [program, ...program.commands]) {
    command.exitOverride().configureOutput({ writeOut: deps.write, writeErr: deps.writeError })
  }
  if (argv.length <= 2) {
    deps.writeError(program.helpInformation())
    return 2
  }
  try {
    await program.parseAsync([...argv])
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2 // commander has printed the reason
    if (error instanceof ExitError) return error.exitCode
    const message = error instanceof Error ? error.message : String(error)
    deps.writeError(`stowage: ${message}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}
