// Decodes, sorts and merges the entries of metadata.managedFields. There is one entry per manager, operation and
// subresource; updates have a separate entry per API version.
import type { ManagedFieldsEntry } from '../kinds/shared/meta-schema.ts'
import { type FieldSet, isEmptySet, sortSet, union } from './field-set.ts'
import { decodeFieldsV1 } from './fields-v1.ts'

export type Operation = 'Apply' | 'Update'

export interface Entry extends ManagedFieldsEntry {
  readonly manager: string
  readonly operation: Operation
  readonly apiVersion: string
  readonly fieldsType: 'FieldsV1'
  readonly fieldsV1: Record<string, FieldSet>
}

/** The manager that writes, with the API version and subresource of the request. */
export interface Writer {
  readonly manager: string
  readonly apiVersion: string
  readonly subresource: string
}

export function createEntry(writer: Writer, operation: Operation, fields: FieldSet, time: string): Entry {
  const { manager, apiVersion, subresource } = writer
  const fieldsV1 = sortSet(fields)
  return subresource
    ? { manager, operation, apiVersion, time, fieldsType: 'FieldsV1', fieldsV1, subresource }
    : { manager, operation, apiVersion, time, fieldsType: 'FieldsV1', fieldsV1 }
}

export const isEntryOf = (entry: Entry, writer: Writer, operation: Operation): boolean =>
  entry.operation === operation &&
  entry.manager === writer.manager &&
  (entry.subresource ?? '') === writer.subresource &&
  (operation === 'Apply' || entry.apiVersion === writer.apiVersion)

export const withFields = (entry: Entry, fieldsV1: FieldSet): Entry =>
  fieldsV1 === entry.fieldsV1 ? entry : { ...entry, fieldsV1: sortSet(fieldsV1) }

export const ownsFields = ({ fieldsV1 }: Entry): boolean => !isEmptySet(fieldsV1)

/** The change that a client requests: a reset, new entries, or no change if its entries are absent or invalid. */
export type RequestedEntries = { is: 'reset' } | { is: 'entries'; entries: readonly Entry[] } | { is: 'unchanged' }

export function readEntries(requestedEntries: readonly ManagedFieldsEntry[] | undefined): RequestedEntries {
  if (!requestedEntries) return { is: 'unchanged' }
  if (requestedEntries.length === 0 || (requestedEntries.length === 1 && isBlank(requestedEntries[0]!)))
    return { is: 'reset' }
  const entries: Entry[] = []
  for (const entry of requestedEntries) {
    const { manager = '', operation, apiVersion, fieldsType } = entry
    const fieldsV1 = decodeFieldsV1(entry.fieldsV1 ?? {})
    if ((operation !== 'Apply' && operation !== 'Update') || !apiVersion || fieldsType !== 'FieldsV1' || !fieldsV1) {
      return { is: 'unchanged' } // a client that does not support managedFields must not be able to remove it
    }
    entries.push({ ...entry, manager, operation, apiVersion, fieldsType, fieldsV1: sortSet(fieldsV1) })
  }
  return { is: 'entries', entries: keepLastEntries(entries) }
}

const isBlank = (entry: ManagedFieldsEntry): boolean => Object.keys(entry).length === 0

/** Keeps the last entry of each writer. */
function keepLastEntries(entries: readonly Entry[]): readonly Entry[] {
  const lastEntries = new Map(entries.map((entry) => [writerIdOf(entry), entry]))
  return entries.filter((entry) => lastEntries.get(writerIdOf(entry)) === entry)
}

/** Returns an ID that entries of the same writer share, as in isEntryOf: the API version of an apply does not matter. */
const writerIdOf = ({ operation, manager, subresource = '', apiVersion }: Entry): string =>
  JSON.stringify([operation, manager, subresource, operation === 'Apply' ? '' : apiVersion])

/** Sorts entries into the order in which they are stored: Apply before Update, then by time. */
export function sortEntries(entries: readonly Entry[]): Entry[] {
  const sortedEntries = [...entries]
  for (let index = 1; index < entries.length; index++) {
    if (compareEntries(entries[index - 1]!, entries[index]!) > 0) return sortedEntries.sort(compareEntries)
  }
  return sortedEntries
}

const compareEntries = (a: Entry, b: Entry): number =>
  compareText(a.operation, b.operation) ||
  compareText(a.time ?? '', b.time ?? '') ||
  compareText(a.manager, b.manager) ||
  compareText(a.apiVersion, b.apiVersion) ||
  compareText(a.subresource ?? '', b.subresource ?? '')

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const UPDATERS_MAX = 10 // if there are more, the oldest are merged and lose the names of their managers
const MERGED_MANAGER = 'ancient-changes' // the name that Kubernetes uses

/** Merges the oldest Update entries if there are more than UPDATERS_MAX. Entries of different API versions are not merged. */
export function mergeOldestEntries(entries: readonly Entry[]): readonly Entry[] {
  if (entries.length <= UPDATERS_MAX) return entries
  const updaters = sortEntries(entries.filter(({ operation }) => operation === 'Update'))
  let excess = updaters.length - UPDATERS_MAX
  if (excess <= 0) return entries
  const mergedEntries = new Set<Entry>()
  const buckets = new Map<string, Entry>()
  for (const entry of updaters) {
    if (excess <= 0) break
    const bucket = buckets.get(entry.apiVersion)
    mergedEntries.add(entry)
    if (!bucket) {
      buckets.set(entry.apiVersion, entry)
      continue
    }
    const writer: Writer = { manager: MERGED_MANAGER, apiVersion: entry.apiVersion, subresource: '' }
    const fields = union(bucket.fieldsV1, entry.fieldsV1)
    buckets.set(entry.apiVersion, createEntry(writer, 'Update', fields, entry.time ?? ''))
    excess--
  }
  return [...entries.filter((entry) => !mergedEntries.has(entry)), ...buckets.values()]
}
