// External programs that some tests need. With CI=true a missing one fails those tests; otherwise they are skipped with the
// reason.
import { execFileSync } from 'node:child_process'

/** Why tests that need the program are skipped; undefined if they run. */
export function programMissing(program: string, versionFlags: readonly string[]): string | undefined {
  try {
    execFileSync(program, versionFlags, { stdio: 'ignore' })
    return undefined
  } catch {
    return process.env.CI ? undefined : `${program} is not installed`
  }
}
