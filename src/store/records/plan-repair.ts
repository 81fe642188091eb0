// Plans the repair of a store: which records to keep, which to take from a backup, and which are lost. ../lmdb-repair.ts
// carries the plan out.
//
// A damaged record that the backup has at the same revision is restored. Otherwise the newest earlier state of the
// object, in the store or in the backup, becomes a new revision. The history then starts at the newest revision, so
// clients that watch must list again.
import { type Floors, type MediumRecord, NO_FLOORS } from '../medium.ts'
import type { Revision } from '../store.ts'
import { copyOf, type InspectOptions, inspectStore, isDamaged, type StoreInspection } from './inspect-store.ts'
import type { RecordDamage } from './record-inspector.ts'

/** Added to the newest revision that was found, because newer ones may be lost, and clients may have seen them. */
const REVISION_GAP = 1_000_000

export interface RepairPlan {
  readonly inspection: StoreInspection
  readonly actions: readonly RepairAction[]
  /** Records to write, in revision order. */
  readonly records: readonly MediumRecord[]
  readonly floors: Floors
}

export interface RepairAction {
  /** restored: the same record of the backup. reverted: an earlier state of the object. dropped: the record is lost. */
  readonly is: 'restored' | 'reverted' | 'dropped'
  readonly revision: Revision
  readonly key: string | undefined
  readonly reason: string
  /** The revision of the earlier state, and whether it is from the backup. */
  readonly from?: { readonly revision: Revision; readonly isBackup: boolean }
}

export interface RepairOptions {
  /** The records of a backup by revision. */
  readonly backup?: ReadonlyMap<Revision, MediumRecord>
  readonly onProgress?: InspectOptions['onProgress']
}

/** Plans the repair of a file. Returns undefined if it is not damaged. */
export function planRepair(
  path: string,
  { backup: backupRecords = new Map(), onProgress }: RepairOptions = {},
): RepairPlan | undefined {
  const records = new Map<Revision, MediumRecord>()
  const inspection = inspectStore({
    path,
    onProgress,
    onRecord: (record) => void records.set(record.revision, copyOf(record)),
  })
  if (!isDamaged(inspection)) return undefined

  let revision = inspection.newestRevision + REVISION_GAP
  const actions: RepairAction[] = []
  for (const damage of inspection.damagedRecords) {
    const { revision: lostRevision, key, reason } = damage
    const backupRecord = backupRecords.get(lostRevision)
    if (backupRecord && backupRecord.key === (key ?? backupRecord.key)) {
      records.set(lostRevision, backupRecord)
      actions.push({ is: 'restored', revision: lostRevision, key: backupRecord.key, reason })
    } else actions.push(revertOrDrop(damage))
  }
  const sortedRecords = [...records.values()].sort((a, b) => a.revision - b.revision)
  const { briefPrefixes } = inspection.description?.floors ?? NO_FLOORS
  return { inspection, actions, records: sortedRecords, floors: { ordinary: revision, brief: revision, briefPrefixes } }

  function revertOrDrop({ revision: lostRevision, key, reason, hasValue }: RecordDamage): RepairAction {
    const dropAction = { is: 'dropped' as const, revision: lostRevision, key, reason }
    if (!key || isSuperseded(records, key, lostRevision)) return dropAction
    if (!hasValue && reason.includes('header')) {
      // It may have been a delete. The earlier states of the object must not become current.
      for (const record of [...records.values()]) if (record.key === key) records.delete(record.revision)
      return dropAction
    }
    const [storeState, backupState] = [newestOf(records, key, lostRevision), newestOf(backupRecords, key, lostRevision)]
    const isBackup = (backupState?.revision ?? 0) > (storeState?.revision ?? 0)
    const earlierState = isBackup ? backupState : storeState
    if (!earlierState || earlierState.isDeleted) return dropAction
    records.set(++revision, { ...earlierState, revision })
    return { ...dropAction, is: 'reverted', from: { revision: earlierState.revision, isBackup } }
  }
}

const isSuperseded = (records: ReadonlyMap<Revision, MediumRecord>, key: string, revision: Revision): boolean =>
  [...records.values()].some((record) => record.key === key && record.revision > revision)

function newestOf(
  records: ReadonlyMap<Revision, MediumRecord>,
  key: string,
  beforeRevision: Revision,
): MediumRecord | undefined {
  let newestRecord: MediumRecord | undefined
  for (const record of records.values()) {
    if (record.key !== key || record.revision >= beforeRevision) continue
    if (!newestRecord || record.revision > newestRecord.revision) newestRecord = record
  }
  return newestRecord
}
