// Runs one command and says how it ended: 0 done, 1 failed, 2 used wrongly, 130 interrupted. People get a sentence, not a stack.
import { CommanderError } from 'commander'
import { UsageError } from '../base/usage-error.ts'
import { Unsuccessful } from './flags.ts'
import { createProgram } from './program.ts'
import type { ProgramDeps } from './program-deps.ts'

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
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2 // commander has said why
    if (error instanceof Unsuccessful) return error.exitCode
    const message = error instanceof Error ? error.message : String(error)
    deps.writeError(`stowage: ${message}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}
