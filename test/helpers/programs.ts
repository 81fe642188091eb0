// Checks for external programs that some tests need. If CI is set, a missing program fails those tests; otherwise they are
// skipped.
import { execFileSync } from 'node:child_process'

/** Returns why tests that need the program are skipped, or undefined if they run. */
export function programSkipReason(program: string, versionFlags: readonly string[]): string | undefined {
  try {
    execFileSync(program, versionFlags, { stdio: 'ignore' })
    return undefined
  } catch {
    return process.env.CI ? undefined : `${program} is not installed`
  }
}
