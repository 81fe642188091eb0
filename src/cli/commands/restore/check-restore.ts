// Runs `stowage restore --dry-run`: verifies the backup and that the data directory has no store, and writes nothing.
import { join } from 'node:path'
import type { Clock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { requireNoStore } from '../../../store/backup/index.ts'
import { type CheckResult, checkBackup, formatInspection } from '../store/check.ts'

export interface RestoreCheck extends CheckResult {
  readonly dryRun: true
  readonly dataDir: string
}

interface CheckOptions {
  readonly dataDir: string
  readonly backups: readonly string[]
  readonly clock: Clock
}

export async function checkRestore({ dataDir, backups, clock }: CheckOptions): Promise<RestoreCheck> {
  if (backups.includes('-')) throw new UsageError('--dry-run reads files and directories, not standard input.')
  await requireNoStore(join(dataDir, 'store'))
  return { dryRun: true, dataDir, ...(await checkBackup(backups, clock)) }
}

export function formatRestoreCheck(check: RestoreCheck): string {
  const inspection = formatInspection(check)
  if (check.archiveProblem !== undefined) return inspection
  return `${inspection}Would restore revision ${check.newestRevision} to ${check.dataDir}.\n`
}
