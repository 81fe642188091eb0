// What the commands on sets of claims have in common: whom they work for, how they end, and what they ask at a time.
import type { Clock, Random } from '../../base/clock.ts'

export interface BulkDeps {
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absent: the output is not looked at as it comes. */
  readonly terminal: { columns(): number } | undefined
  write(text: string): void
}

/** The exit code of one that was interrupted. */
export const INTERRUPTED = 130
/** Questions to the server at a time. */
export const CONCURRENT_REQUESTS = 8
