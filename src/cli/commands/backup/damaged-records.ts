// Formats the damaged records that backup, restore and `store check` find, and makes a command fail if it copied any.
import type { RecordDamage } from '../../../store/index.ts'

const LISTED_RECORDS_MAX = 100 // further ones are counted

export const formatDamagedRecord = ({ revision, key, reason }: RecordDamage): string =>
  `  revision ${revision}, ${key === undefined ? 'unknown key' : JSON.stringify(key)}: ${reason}`

/** Throws an error that names the damaged records of a complete copy, if there are any, so that the exit code is 1. */
export function requireIntactRecords(records: readonly RecordDamage[]): void {
  if (records.length === 0) return
  const count = records.length === 1 ? '1 record is damaged and was' : `${records.length} records are damaged and were`
  const omissionLines = records.length > LISTED_RECORDS_MAX ? [`  and ${records.length - LISTED_RECORDS_MAX} more`] : []
  const lines = [
    `${count} copied unchanged. "stowage store repair" restores damaged records from an earlier backup, or drops them:`,
    ...records.slice(0, LISTED_RECORDS_MAX).map(formatDamagedRecord),
    ...omissionLines,
  ]
  throw new Error(lines.join('\n'))
}
