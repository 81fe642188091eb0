// The interface of a command: each folder of commands/ exports an `AddCommand` from its command.ts, which declares flags and
// help. A command's code is imported when the command runs, so that `--help` stays fast.
import type { Command } from 'commander'
import type { Clock, Random } from '../base/clock.ts'
import type { LogFormat } from '../base/log.ts'
import type { ProcessDeps } from '../runtime/index.ts'

/** The dependencies that main.ts passes to every command. */
export interface ProgramDeps {
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  /** Writes to standard output. */
  write(text: string): void
}

export type AddCommand = (program: Command, deps: ProgramDeps) => void

export interface LogFlags {
  readonly logLevel?: string
  /** Default: text on a terminal, otherwise JSON. */
  readonly logFormat?: LogFormat
}

/** Adds the log and the environment, for commands that run until they are stopped. */
export async function createProcessDeps(
  { clock, random, signal }: ProgramDeps,
  { logLevel = 'info', logFormat }: LogFlags,
): Promise<ProcessDeps> {
  const { createLog } = await import('../runtime/log/log.ts')
  return { clock, random, signal, log: createLog(logLevel, logFormat), env: process.env }
}
