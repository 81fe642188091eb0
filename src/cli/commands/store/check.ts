// Runs `stowage store check`: inspects the file of a stopped store, a backup that is a directory, or backup archives.
import { resolve } from 'node:path'
import type { Clock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/usage-error.ts'
import { ArchiveError, ArchiveInspector, type InspectedArchive } from '../../../store/backup/index.ts'
import { inspectStore, isDamaged, type RecordDamage, type StoreInspection } from '../../../store/index.ts'
import { formatCount } from '../../output/units.ts'
import { createArchiveReader } from '../backup/archive-reader.ts'
import { formatDamagedRecord } from '../backup/damaged-records.ts'
import { inspectArchiveFile } from '../backup/verify-archives.ts'
import { createPageProgress } from './page-progress.ts'
import { areArchives, requireStoppedStore, storeFileOf } from './store-file.ts'

export interface CheckResult {
  readonly path: string
  readonly isDamaged: boolean
  readonly format: number | undefined
  readonly records: number
  readonly newestRevision: number
  readonly damagedRecords: readonly RecordDamage[]
  /** Set for a store. */
  readonly pages?: number
  readonly damagedPages?: StoreInspection['damagedPages']
  readonly missingRecords?: StoreInspection['missingRecords']
  /** Set for archives. */
  readonly missingRevisions?: InspectedArchive['missingRevisions']
  /** Why an archive is damaged as a whole. */
  readonly archiveProblem?: string
}

/** Checks a data directory. Throws UsageError if it cannot be read, so that the exit code is 2. */
export async function checkStore(dataDir: string, clock: Clock): Promise<CheckResult> {
  await requireStoppedStore(dataDir)
  return checkFile(storeFileOf(dataDir), clock)
}

/** Checks a backup: a directory, its file, or a full archive and the incremental ones that continue it. */
export async function checkBackup(paths: readonly string[], clock: Clock): Promise<CheckResult> {
  if (await areArchives(paths)) return checkArchives(paths, clock)
  const [location = ''] = paths
  const path = storeFileOf(location)
  if (path !== resolve(location)) await requireStoppedStore(location)
  return checkFile(path, clock)
}

function checkFile(path: string, clock: Clock): CheckResult {
  try {
    const inspection = inspectStore({ path, onProgress: createPageProgress('Checking', clock) })
    const { description, records, newestRevision, damagedRecords, pages, damagedPages, missingRecords } = inspection
    return {
      path,
      isDamaged: isDamaged(inspection),
      format: description?.format,
      records,
      newestRevision,
      damagedRecords,
      pages,
      damagedPages,
      missingRecords,
    }
  } catch (error) {
    throw new UsageError(`Cannot check ${path}: ${(error as Error).message}`)
  }
}

async function checkArchives(paths: readonly string[], clock: Clock): Promise<CheckResult> {
  const inspector = new ArchiveInspector({ isOneSequence: true })
  const reader = await createArchiveReader(paths, { title: 'Checking', clock })
  const path = paths.join(', ')
  let lastArchive: InspectedArchive | undefined
  try {
    for (const archive of paths) lastArchive = await inspectArchiveFile(inspector, archive, reader)
  } catch (error) {
    if (!(error instanceof ArchiveError)) throw error
    const emptyResult = { format: undefined, records: 0, newestRevision: 0, damagedRecords: [] }
    return { path, isDamaged: true, ...emptyResult, archiveProblem: error.message }
  } finally {
    reader.finish()
  }
  const { manifest, records, damagedRecords, missingRevisions } = lastArchive!
  return {
    path,
    isDamaged: damagedRecords.length > 0 || missingRevisions.length > 0,
    format: manifest.storeFormat,
    records,
    newestRevision: manifest.revision,
    damagedRecords,
    missingRevisions,
  }
}

export function formatInspection(result: CheckResult): string {
  if (result.archiveProblem !== undefined) return `${result.archiveProblem}\n`
  const { path, format, pages, records, newestRevision, damagedPages = [], damagedRecords } = result
  const size = pages === undefined ? '' : `, ${pages} pages`
  const lines = [
    `${path}: format ${format ?? 'unknown'}, ${formatCount(records, 'intact record')} up to revision ${newestRevision}${size}.`,
  ]
  if (format === undefined) lines.push('  The description of the store is missing or damaged.')
  for (const { page, problem } of damagedPages) lines.push(`  page ${page}: ${problem}`)
  lines.push(...damagedRecords.map(formatDamagedRecord), ...formatMissing(result))
  if (!result.isDamaged) lines.push('No damage found.')
  else {
    const advice = pages === undefined ? '' : ' See what can be saved: stowage store repair --dry-run'
    lines.push(`${summarizeDamage(damagedRecords.length, damagedPages.length)}${advice}`)
  }
  return `${lines.join('\n')}\n`
}

/** Without damaged records or pages, records or the description of the store are missing, which other lines state. */
function summarizeDamage(recordCount: number, pageCount: number): string {
  const counts = [
    ...(recordCount > 0 ? [formatCount(recordCount, 'record')] : []),
    ...(pageCount > 0 ? [formatCount(pageCount, 'page')] : []),
  ]
  return counts.length > 0 ? `Damaged: ${counts.join(', ')}.` : 'Damaged.'
}

function formatMissing({ missingRecords, missingRevisions = [] }: CheckResult): string[] {
  const lines = missingRevisions.length > 0 ? [`  no archive has the revisions ${missingRevisions.join(', ')}`] : []
  if (!missingRecords || missingRecords.countMax === 0) return lines
  const ranges = missingRecords.revisions.map(({ first, last }) =>
    last === undefined ? `from ${first} on` : first === last ? `${first}` : `${first} to ${last}`,
  )
  const count = missingRecords.countMax === 1 ? 'up to 1 record' : `up to ${missingRecords.countMax} records`
  return [...lines, `  ${count} missing, with revisions among these: ${ranges.join(', ')}`]
}
