// What a bulk command (grow, migrate) gets from its process, and the requests it may make at once.
import type { ProgramDeps } from '../command.ts'

export interface BulkDeps extends ProgramDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absent: standard output is not a terminal. */
  readonly terminal: { columns(): number } | undefined
}

export const bulkDeps = (deps: ProgramDeps): BulkDeps => ({
  ...deps,
  env: process.env,
  terminal: process.stdout.isTTY ? { columns: () => process.stdout.columns || COLUMNS_DEFAULT } : undefined,
})

const COLUMNS_DEFAULT = 80

/** Concurrent requests to the API server. */
export const CONCURRENT_REQUESTS = 8
