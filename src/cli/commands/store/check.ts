// Runs `stowage store check`: inspects the file of a stopped store or of a backup.
import { resolve } from 'node:path'
import { UsageError } from '../../../base/usage-error.ts'
import { inspectStore, isDamaged, type StoreInspection } from '../../../store/index.ts'
import { progressOf, stoppedStoreDir, storeFileOf } from './store-file.ts'

export interface CheckResult {
  readonly path: string
  readonly isDamaged: boolean
  readonly format: number | undefined
  readonly pages: number
  readonly records: number
  readonly newestRevision: number
  readonly damagedPages: StoreInspection['damagedPages']
  readonly damagedRecords: StoreInspection['damagedRecords']
}

/** Checks a data directory or a backup. Throws UsageError if it cannot be read, so that the exit code is 2. */
export async function checkStore(location: string): Promise<CheckResult> {
  const path = storeFileOf(location)
  if (path !== resolve(location)) await stoppedStoreDir(location)
  try {
    const inspection = inspectStore({ path, onProgress: progressOf('Checking') })
    const { description, pages, records, newestRevision, damagedPages, damagedRecords } = inspection
    return {
      path,
      isDamaged: isDamaged(inspection),
      format: description?.format,
      pages,
      records,
      newestRevision,
      damagedPages,
      damagedRecords,
    }
  } catch (error) {
    throw new UsageError(`Cannot check ${path}: ${(error as Error).message}`)
  }
}

export function formatInspection(result: CheckResult): string {
  const { path, format, pages, records, newestRevision, damagedPages, damagedRecords } = result
  const lines = [
    `${path}: format ${format ?? 'unknown'}, ${records} intact records up to revision ${newestRevision}, ${pages} pages.`,
  ]
  if (format === undefined) lines.push('  The description of the store is missing or damaged.')
  for (const { page, problem } of damagedPages) lines.push(`  page ${page}: ${problem}`)
  for (const { revision, key, reason } of damagedRecords) {
    lines.push(`  revision ${revision}, ${key === undefined ? 'unknown key' : JSON.stringify(key)}: ${reason}`)
  }
  if (!result.isDamaged) lines.push('No damage found.')
  else {
    lines.push(
      `Damaged: ${damagedRecords.length} records, ${damagedPages.length} pages. See what can be saved: stowage store repair --dry-run`,
    )
  }
  return `${lines.join('\n')}\n`
}
