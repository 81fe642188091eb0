// Runs one command and returns its exit code: 0 for success, 1 for a failure, 2 for a usage error, 130 if interrupted. Errors
// are printed without a stack trace.
import { type Command, CommanderError } from 'commander'
import { ApiError } from '../api/status-error.ts'
import { UsageError } from '../base/usage-error.ts'
import type { ProgramDeps } from './command.ts'
import { ExitError } from './exit-error.ts'
import { createProgram, listCommandsBelow } from './program.ts'

export interface CommandLineDeps extends ProgramDeps {
  /** Writes to standard error. */
  writeError(text: string): void
  /** The width at which help is wrapped. Default: 80. */
  readonly columns?: number
}

const COLUMNS_DEFAULT = 80
/** Descriptions with fewer columns next to the flags are not wrapped. */
const WRAPPED_COLUMNS_MIN = 20

export async function runCommandLine(argv: readonly string[], deps: CommandLineDeps): Promise<number> {
  const program = createProgram(deps)
  for (const command of [program, ...listCommandsBelow(program)]) {
    command
      .configureHelp({ minWidthToWrap: WRAPPED_COLUMNS_MIN })
      .exitOverride()
      .configureOutput({
        writeOut: deps.write,
        writeErr: deps.writeError,
        getOutHelpWidth: () => deps.columns ?? COLUMNS_DEFAULT,
        getErrHelpWidth: () => deps.columns ?? COLUMNS_DEFAULT,
        outputError: (text, write) => write(text.replace(/^error: /, 'stowage: ')), // the same prefix for all errors
      })
  }
  if (argv.length <= 2) {
    deps.writeError(program.helpInformation())
    return 2
  }
  try {
    await program.parseAsync(withTwoDashes(argv, program))
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2 // commander has printed the reason
    if (error instanceof ExitError) return error.exitCode
    if (deps.signal.aborted && isAbort(error)) return INTERRUPTED_EXIT_CODE
    const message = error instanceof Error ? error.message : String(error)
    deps.writeError(`stowage: ${message}\n`)
    return error instanceof UsageError ? 2 : 1
  }
}

const INTERRUPTED_EXIT_CODE = 130

/** Returns whether the error is that of a request or of a wait that the stop signal has ended. */
const isAbort = (error: unknown): boolean =>
  error instanceof ApiError ? error.code === 499 : error instanceof Error && error.name === 'AbortError'

/** Accepts `-csi-address=x` and `-v=5` like the upstream sidecars: adds a dash to long flags that have only one. */
function withTwoDashes(argv: readonly string[], program: Command): string[] {
  const command = program.commands.find((candidate) => candidate.name() === argv[2])
  const isLongFlag = (name: string) => command?.options.some(({ long }) => long === `--${name}`)
  return argv.map((text) => {
    const [, name = '', value] = /^-([A-Za-z][\w-]*)(=.*)?$/s.exec(text) ?? []
    return isLongFlag(name) && (name.length > 1 || value !== undefined) ? `-${text}` : text
  })
}
