// What the bulk commands (grow, migrate) share: their dependencies, exit code and concurrency.
import type { Clock, Random } from '../../base/clock.ts'

export interface BulkDeps {
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absent: standard output is not a terminal. */
  readonly terminal: { columns(): number } | undefined
  write(text: string): void
}

/** Exit code of an interrupted command. */
export const INTERRUPTED = 130
/** Concurrent requests to the API server. */
export const CONCURRENT_REQUESTS = 8
