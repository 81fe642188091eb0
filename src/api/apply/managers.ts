// The entries of metadata.managedFields: reading those that clients send, ordering them and bounding their number.
// One entry exists per manager, operation and subresource; updates have a separate entry per API version.
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

/** The manager that writes, with the API version and subresource of the request. */
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

/** What a client requests: a reset, these entries, or (if they are invalid) no change. */
export type AskedEntries = { is: 'reset' } | { is: 'entries'; entries: readonly Entry[] } | { is: 'nothing' }

export function readEntries(asked: readonly ManagedFieldsEntry[] | undefined): AskedEntries {
  if (!asked) return { is: 'nothing' }
  if (asked.length === 0 || (asked.length === 1 && isBlank(asked[0]!))) return { is: 'reset' }
  const entries: Entry[] = []
  for (const entry of asked) {
    const { manager = '', operation, apiVersion, fieldsType } = entry
    const fieldsV1 = decodeFieldsV1(entry.fieldsV1 ?? {})
    if ((operation !== 'Apply' && operation !== 'Update') || !apiVersion || fieldsType !== 'FieldsV1' || !fieldsV1) {
      return { is: 'nothing' } // a client that does not understand managedFields must not be able to destroy it
    }
    entries.push({ ...entry, manager, operation, apiVersion, fieldsType, fieldsV1 })
  }
  return { is: 'entries', entries: merged(entries) }
}

const isBlank = (entry: ManagedFieldsEntry): boolean => Object.keys(entry).length === 0

/** Keeps the last entry of each manager, operation and subresource. */
function merged(entries: readonly Entry[]): readonly Entry[] {
  return entries.filter(
    (entry, index) => !entries.slice(index + 1).some((later) => isEntryOf(later, writerOf(entry), entry.operation)),
  )
}

const writerOf = ({ manager, apiVersion, subresource = '' }: Entry): Writer => ({ manager, apiVersion, subresource })

/** The order in which entries are stored: Apply before Update, then by time. */
export const inOrder = (entries: readonly Entry[]): Entry[] => [...entries].sort(byOrder)

const byOrder = (a: Entry, b: Entry): number =>
  order(a.operation, b.operation) ||
  order(a.time ?? '', b.time ?? '') ||
  order(a.manager, b.manager) ||
  order(a.apiVersion, b.apiVersion) ||
  order(a.subresource ?? '', b.subresource ?? '')

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const UPDATERS_MAX = 10 // beyond this the oldest entries are merged into one without the names of their managers
const MERGED_MANAGER = 'ancient-changes' // the name that Kubernetes uses

/** Merges the oldest Update entries of each API version into one until at most UPDATERS_MAX are left. */
export function mergeOldest(entries: readonly Entry[]): readonly Entry[] {
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
    const writer: Writer = { manager: MERGED_MANAGER, apiVersion: entry.apiVersion, subresource: '' }
    const fields = union(bucket.fieldsV1, entry.fieldsV1)
    buckets.set(entry.apiVersion, entryOf(writer, 'Update', fields, entry.time ?? ''))
    excess--
  }
  return [...entries.filter((entry) => !gone.has(entry)), ...buckets.values()]
}
