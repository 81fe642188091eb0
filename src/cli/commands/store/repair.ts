// Runs `stowage store repair`: plans the repair, and carries it out if it is confirmed.
import { planRepair, type RepairAction, repairStore } from '../../../store/index.ts'
import { progressOf, stoppedStoreDir, storeFileOf } from './store-file.ts'

export interface RepairResult {
  /** intact: nothing to do. planned: nothing was changed yet. */
  readonly is: 'intact' | 'planned' | 'repaired'
  readonly path: string
  readonly damagedPages: number
  readonly records: number
  readonly actions: readonly RepairAction[]
  /** Where the damaged file was kept. */
  readonly damagedFile?: string
}

export async function repair(
  dataDir: string,
  { backup, isConfirmed }: { readonly backup: string | undefined; readonly isConfirmed: boolean },
): Promise<RepairResult> {
  const dir = await stoppedStoreDir(dataDir)
  const path = storeFileOf(dataDir)
  const backupFile = backup === undefined ? undefined : storeFileOf(backup)
  const plan = planRepair(path, { backup: backupFile, onProgress: progressOf('Reading') })
  if (!plan) return { is: 'intact', path, damagedPages: 0, records: 0, actions: [] }
  const { actions, records, inspection } = plan
  const result = { path, damagedPages: inspection.damagedPages.length, records: records.length, actions }
  if (!isConfirmed) return { is: 'planned', ...result }
  return { is: 'repaired', ...result, damagedFile: await repairStore(dir, plan) }
}

export function formatRepair({ is, path, damagedPages, records, actions, damagedFile }: RepairResult): string {
  if (is === 'intact') return `${path} is not damaged: there is nothing to repair.\n`
  const lines = actions.map(formatAction)
  if (damagedPages > 0) {
    lines.push(`  ${damagedPages} damaged pages: their records are lost, unless they are listed above as restored`)
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
  return `${record}; back to its state at revision ${from.revision}${from.isBackup ? ' from the backup' : ''}`
}
