// The records of the journal. encode-activity.ts, encode-change.ts and decode-records.ts define their stored form.
import type { Activity } from '../../api/kinds/operation/activity-schema.ts'
import type { StepName } from '../../api/kinds/timeline/timeline-schema.ts'

/** A committed change of a claim, a volume, an attachment, or a pod that uses claims. */
export interface ChangeRecord {
  readonly atMs: number
  readonly kind: string
  readonly namespace?: string
  readonly name: string
  readonly uid: string
  readonly verb: 'create' | 'update' | 'delete'
  readonly user: string
  readonly manager?: string
  /** The fields that the change has set, such as `phase Pending → Bound`. */
  readonly changes: readonly string[]
  /** The volume of a claim or an attachment, by name. */
  readonly volume?: string
  /** A volume's claim, by uid. */
  readonly claimUid?: string
  /** The driver's ID for the volume. */
  readonly handle?: string
  /** A pod's claims, by name. */
  readonly claims?: readonly string[]
  /** The step that the change completes. */
  readonly step?: StepName
}

/** An attempt of a component, or a call to a driver. */
export interface ActivityRecord {
  readonly process: string
  readonly activity: Activity
  /** The start of the activity, if it is known as a number. */
  readonly startMs?: number
}

/** Replaces records of one object that were dropped, because it had too many. */
export interface DropRecord {
  readonly atMs: number
  /** The uid, volume ID or name that the records had in common. */
  readonly dropped: string
  readonly count: number
}

export type JournalRecord = ChangeRecord | ActivityRecord | DropRecord

export const isChange = (record: JournalRecord): record is ChangeRecord => 'verb' in record
export const isActivity = (record: JournalRecord): record is ActivityRecord => 'activity' in record

export const timeOf = (record: JournalRecord): number =>
  isActivity(record) ? Date.parse(record.activity.start) : record.atMs

/** Returns the uid or name of the object, or the volume of a driver call. The limit of records applies to each owner. */
export function ownerOf(record: JournalRecord): string {
  if (isChange(record)) return record.uid
  if (!isActivity(record)) return record.dropped
  const { object, volume } = record.activity
  return object?.uid ?? object?.name ?? volume ?? ''
}

/** Returns the text as a JSON string. */
export const quoteText = (text: string): string => (PLAIN_TEXT.test(text) ? `"${text}"` : JSON.stringify(text))

/** Returns the text as a part of a JSON string. */
export const escapeText = (text: string): string => (PLAIN_TEXT.test(text) ? text : JSON.stringify(text).slice(1, -1))

/** Printable ASCII without quotes or backslashes, which JSON does not escape. */
const PLAIN_TEXT = /^[ !#-[\]-~]*$/
