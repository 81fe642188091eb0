// Runs `stowage store repair`: plans the repair, and carries it out if it is confirmed.
import type { Clock } from '../../../base/clock.ts'
import { ArchiveInspector } from '../../../store/backup/index.ts'
import {
  copyOf,
  type MediumRecord,
  planRepair,
  type RepairAction,
  type Revision,
  readRecords,
  repairStore,
} from '../../../store/index.ts'
import { createArchiveReader } from '../backup/archive-reader.ts'
import { inspectArchiveFile } from '../backup/verify-archives.ts'
import { createPageProgress } from './page-progress.ts'
import { areArchives, requireStoppedStore, storeFileOf } from './store-file.ts'

export interface RepairResult {
  /** `intact`: there is nothing to repair. `planned`: nothing has been changed yet. */
  readonly is: 'intact' | 'planned' | 'repaired'
  readonly path: string
  readonly damagedPages: number
  readonly records: number
  readonly actions: readonly RepairAction[]
  /** The new path of the damaged file, which is not deleted. */
  readonly damagedFile?: string
}

export interface RepairRequest {
  readonly backup: readonly string[] | undefined
  readonly isConfirmed: boolean
  readonly clock: Clock
}

export async function runRepair(dataDir: string, { backup, isConfirmed, clock }: RepairRequest): Promise<RepairResult> {
  const dir = await requireStoppedStore(dataDir)
  const path = storeFileOf(dataDir)
  const backupRecords = backup && (await readBackup(backup, clock))
  const plan = planRepair(path, { backup: backupRecords, onProgress: createPageProgress('Reading', clock) })
  if (!plan) return { is: 'intact', path, damagedPages: 0, records: 0, actions: [] }
  const { actions, records, inspection } = plan
  const result = { path, damagedPages: inspection.damagedPages.length, records: records.length, actions }
  if (!isConfirmed) return { is: 'planned', ...result }
  return { is: 'repaired', ...result, damagedFile: await repairStore(dir, plan) }
}

/** Returns the intact records of a backup by revision. */
async function readBackup(paths: readonly string[], clock: Clock): Promise<Map<Revision, MediumRecord>> {
  if (!(await areArchives(paths))) return readRecords(storeFileOf(paths[0] ?? ''))
  const records = new Map<Revision, MediumRecord>()
  const inspector = new ArchiveInspector({
    isOneSequence: true,
    onRecord: (record) => void records.set(record.revision, copyOf(record)),
    onDrop: (revision) => void records.delete(revision),
  })
  const reader = await createArchiveReader(paths, { title: 'Reading', clock })
  try {
    for (const path of paths) await inspectArchiveFile(inspector, path, reader)
  } finally {
    reader.finish()
  }
  return records
}

export function formatRepair({ is, path, damagedPages, records, actions, damagedFile }: RepairResult): string {
  if (is === 'intact') return `${path} is not damaged: there is nothing to repair.\n`
  const lines = actions.map(formatAction)
  if (damagedPages > 0) {
    lines.push(
      `  ${damagedPages} damaged ${damagedPages === 1 ? 'page: its' : 'pages: their'} records are lost, unless they are listed above as restored`,
    )
  }
  const summary =
    is === 'planned'
      ? `${records} records can be kept. Nothing was changed: add --yes to repair ${path}.`
      : `Repaired ${path} with ${records} records. The damaged file is ${damagedFile}.`
  return `${lines.join('\n')}\n${summary}\n`
}

function formatAction({ is, revision, key, reason, from }: RepairAction): string {
  const record = `  ${is.padEnd(8)} revision ${revision}, ${key === undefined ? 'unknown key' : JSON.stringify(key)}: ${reason}`
  if (!from) return record
  return `${record}; reverted to its state at revision ${from.revision}${from.isBackup ? ' from the backup' : ''}`
}
