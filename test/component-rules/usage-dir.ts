// The directory in which the test files of this run write the permissions that they used. It is removed at the end.
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Evaluated in the main process of vitest, which passes it to the workers. */
export const RULE_USAGE_DIR = join(tmpdir(), `stowage-rule-usage-${process.pid}`)

export const teardown = (): void => rmSync(RULE_USAGE_DIR, { recursive: true, force: true })
