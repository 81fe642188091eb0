// What main.ts passes to every command.
import type { Clock, Random } from '../base/clock.ts'

export interface ProgramDeps {
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  /** Writes to standard output. */
  write(text: string): void
}
