// The record of who owns which fields: entries of metadata.managedFields, read from clients, ordered and bounded.
// An entry belongs to a manager, an operation and a subresource; for updates each API version has one of its own.
import type { ManagedFieldsEntry } from '../kinds/shared/meta-schema.ts'
import { type FieldSet, isEmptySet, union } from './field-set.ts'
import { decodeFieldsV1 } from './fields-v1.ts'

export type Operation = 'Apply' | 'Update'

export interface Entry extends ManagedFieldsEntry {
  readonly manager: string
  readonly operation: Operation
  readonly apiVersion: string
  readonly fieldsType: 'FieldsV1'
  readonly fieldsV1: Record<string, FieldSet>
}

/** Who writes, and through which version and subresource. */
export interface Writer {
  readonly manager: string
  readonly apiVersion: string
  readonly subresource: string
}

export function entryOf(writer: Writer, operation: Operation, fields: FieldSet, time: string): Entry {
  const { manager, apiVersion, subresource } = writer
  return {
    manager,
    operation,
    apiVersion,
    time,
    fieldsType: 'FieldsV1',
    fieldsV1: fields,
    ...(subresource ? { subresource } : {}),
  }
}

export const isEntryOf = (entry: Entry, writer: Writer, operation: Operation): boolean =>
  entry.operation === operation &&
  entry.manager === writer.manager &&
  (entry.subresource ?? '') === writer.subresource &&
  (operation === 'Apply' || entry.apiVersion === writer.apiVersion)

export const withFields = (entry: Entry, fieldsV1: FieldSet): Entry =>
  fieldsV1 === entry.fieldsV1 ? entry : { ...entry, fieldsV1 }

export const ownsSomething = ({ fieldsV1 }: Entry): boolean => !isEmptySet(fieldsV1)

/** What a client wants the record to be: a new beginning, these entries, or (where they make no sense) no change. */
export type AskedEntries = { is: 'reset' } | { is: 'entries'; entries: readonly Entry[] } | { is: 'nothing' }

export function readEntries(asked: readonly ManagedFieldsEntry[] | undefined): AskedEntries {
  if (!asked) return { is: 'nothing' }
  if (asked.length === 0 || (asked.length === 1 && isBlank(asked[0]!))) return { is: 'reset' }
  const entries: Entry[] = []
  for (const entry of asked) {
    const { manager = '', operation, apiVersion, fieldsType } = entry
    const fieldsV1 = decodeFieldsV1(entry.fieldsV1 ?? {})
    if ((operation !== 'Apply' && operation !== 'Update') || !apiVersion || fieldsType !== 'FieldsV1' || !fieldsV1) {
      return { is: 'nothing' } // clients that do not understand the record must not be able to destroy it
    }
    entries.push({ ...entry, manager, operation, apiVersion, fieldsType, fieldsV1 })
  }
  return { is: 'entries', entries: merged(entries) }
}

const isBlank = (entry: ManagedFieldsEntry): boolean => Object.keys(entry).length === 0

/** One entry per manager; of two the later one counts. */
function merged(entries: readonly Entry[]): readonly Entry[] {
  return entries.filter(
    (entry, index) => !entries.slice(index + 1).some((later) => isEntryOf(later, writerOf(entry), entry.operation)),
  )
}

const writerOf = ({ manager, apiVersion, subresource = '' }: Entry): Writer => ({ manager, apiVersion, subresource })

/** The order in which a record is written: appliers first, then by time. */
export const inOrder = (entries: readonly Entry[]): Entry[] => [...entries].sort(byOrder)

const byOrder = (a: Entry, b: Entry): number =>
  order(a.operation, b.operation) ||
  order(a.time ?? '', b.time ?? '') ||
  order(a.manager, b.manager) ||
  order(a.apiVersion, b.apiVersion) ||
  order(a.subresource ?? '', b.subresource ?? '')

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const UPDATERS_MAX = 10 // beyond this the oldest are merged, and who they were is forgotten
const FORGOTTEN = 'ancient-changes'

/** Merges the oldest updaters of each version into one, until there are few enough. */
export function forgetOldest(entries: readonly Entry[]): readonly Entry[] {
  const updaters = inOrder(entries.filter(({ operation }) => operation === 'Update'))
  let excess = updaters.length - UPDATERS_MAX
  if (excess <= 0) return entries
  const gone = new Set<Entry>()
  const buckets = new Map<string, Entry>()
  for (const entry of updaters) {
    if (excess <= 0) break
    const bucket = buckets.get(entry.apiVersion)
    gone.add(entry)
    if (!bucket) {
      buckets.set(entry.apiVersion, entry)
      continue
    }
    const writer: Writer = { manager: FORGOTTEN, apiVersion: entry.apiVersion, subresource: '' }
    const fields = union(bucket.fieldsV1, entry.fieldsV1)
    buckets.set(entry.apiVersion, entryOf(writer, 'Update', fields, entry.time ?? ''))
    excess--
  }
  return [...entries.filter((entry) => !gone.has(entry)), ...buckets.values()]
}
