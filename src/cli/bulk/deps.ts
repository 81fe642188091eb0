// The dependencies of bulk commands (grow, migrate), and their limit of concurrent requests.
import type { ProgramDeps } from '../command.ts'
import type { Progress } from './progress-line.ts'

export interface BulkDeps extends ProgramDeps {
  /** Called with the number of selected claims. The returned Progress replaces the display on the terminal. */
  readonly observe?: (claims: number) => Progress
  readonly env: Readonly<Record<string, string | undefined>>
  /** Undefined if standard output is not a terminal. */
  readonly terminal: { columns(): number } | undefined
}

export const createBulkDeps = (deps: ProgramDeps): BulkDeps => ({
  ...deps,
  env: process.env,
  terminal: process.stdout.isTTY ? { columns: () => process.stdout.columns || COLUMNS_DEFAULT } : undefined,
})

const COLUMNS_DEFAULT = 80

/** Maximum number of concurrent requests to the API server. */
export const CONCURRENT_REQUESTS_MAX = 8
