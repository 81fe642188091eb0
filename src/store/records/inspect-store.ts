// Inspects the file of a store without opening it: checks all pages (../pages), compares every header and value with their
// checksums, and determines which revisions may have been lost with damaged pages.
import { closeSync, openSync } from 'node:fs'
import type { MediumRecord } from '../medium.ts'
import { checkPages, type PagesReport } from '../pages/check-pages.ts'
import type { PageProblem } from '../pages/check-tree.ts'
import type { Revision } from '../store.ts'
import { headerRevisionsOf, NAME_BYTES, nameOfSortKey, type RevisionRange, readSortKey } from './record-codec.ts'
import { RecordInspector, type RecordInspectorOptions, type RecordsInspection } from './record-inspector.ts'

export interface StoreInspection extends RecordsInspection {
  readonly path: string
  readonly pages: number
  readonly damagedPages: readonly Omit<PageProblem, 'keys'>[]
  readonly missingRecords: MissingRecords
}

/** Records of which neither header nor value was found. Both were on damaged pages, or the record is a delete without a value. */
export interface MissingRecords {
  /** The upper bound of their number, from the number of entries in the meta page. 0 if no page is damaged. */
  readonly countMax: number
  /** The revisions that the damaged pages may have had. All missing records are among them, with others that never existed. */
  readonly revisions: readonly RevisionRange[]
}

export interface InspectOptions extends RecordInspectorOptions {
  readonly onProgress?: (progress: { readonly pagesDone: number; readonly pagesTotal: number }) => void
}

/** Throws if the file cannot be opened, or has a format that this version does not know. */
export function inspectStore({ path, onProgress, onRecord }: InspectOptions): StoreInspection {
  const inspector = new RecordInspector({ path, onRecord })
  let entries = 0
  const fd = openSync(path, 'r')
  try {
    const report = checkPages({
      fd,
      keyBytes: NAME_BYTES,
      readKey: readSortKey,
      onNode: ({ key, readData }) => {
        entries++
        inspector.add(nameOfSortKey(key), readData())
      },
      onProgress,
    })
    const inspection = inspector.finish()
    return {
      ...inspection,
      path,
      pages: report.pagesTotal,
      damagedPages: report.problems.map(({ page, problem }) => ({ page, problem })),
      missingRecords: missingRecordsOf(report, entries, inspection),
    }
  } finally {
    closeSync(fd)
  }
}

/** Returns the intact records of a file by revision. */
export function readRecords(path: string): Map<Revision, MediumRecord> {
  const records = new Map<Revision, MediumRecord>()
  inspectStore({ path, onRecord: (record) => void records.set(record.revision, copyOf(record)) })
  return records
}

/** Returns a record whose value stays valid. */
export const copyOf = (record: MediumRecord): MediumRecord => ({ ...record, value: Uint8Array.from(record.value) })

export const isDamaged = ({ description, damagedPages, damagedRecords }: StoreInspection): boolean =>
  description === undefined || damagedPages.length > 0 || damagedRecords.length > 0

function missingRecordsOf(
  { problems, entriesTotal }: PagesReport,
  entriesFound: number,
  { damagedRecords, description }: RecordsInspection,
): MissingRecords {
  // Each record of which only the header or only the value was found explains one entry that was not found.
  const halfRecords = damagedRecords.filter(({ reason }) => reason.endsWith(' is missing')).length
  const countMax = Math.max(0, entriesTotal - entriesFound - halfRecords - (description ? 0 : 1))
  const revisions = problems.flatMap(({ keys }) => (keys ? headerRevisionsOf(keys) : []))
  return { countMax, revisions: countMax > 0 ? revisions : [] }
}
