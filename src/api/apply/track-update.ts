// Computes managedFields after a create, update or patch: the writer becomes the only owner of the fields that it changes,
// and removed fields have no owner. An object without managedFields stays without them until the first apply.
import { compareStates } from './compare-states.ts'
import { difference, type FieldSet, isEmptySet, union } from './field-set.ts'
import {
  createEntry,
  type Entry,
  isEntryOf,
  mergeOldestEntries,
  ownsFields,
  sortEntries,
  type Writer,
  withFields,
} from './managed-fields.ts'
import type { ObjectShape } from './shape.ts'
import { withoutUntrackedFields } from './untracked-fields.ts'
import { createdFields } from './value-fields.ts'

export interface TrackedWrite {
  readonly shape: ObjectShape
  readonly writer: Writer
  /** The current time in RFC 3339. */
  readonly time: string
}

/** Returns the entries of a new object. */
export function trackCreate(write: TrackedWrite, object: object): Entry[] {
  const fields = withoutUntrackedFields(createdFields(write.shape, object as Record<string, unknown>))
  return isEmptySet(fields) ? [] : [createEntry(write.writer, 'Update', fields, write.time)]
}

/** Returns the entries after the write, or the same array if they do not change. */
export function trackUpdate(
  { shape, writer, time }: TrackedWrite,
  entries: readonly Entry[],
  { before, after }: { before: object; after: object },
): readonly Entry[] {
  if (entries.length === 0) return entries
  const { removed, modified, added } = compareStates(shape, before, after)
  const remainingEntries = removeOwnership(entries, removed)
  const changedFields = union(modified, added)
  const ownFields = withoutUntrackedFields(changedFields)
  if (isEmptySet(ownFields)) return remainingEntries === entries ? entries : sortEntries(remainingEntries)
  const previousEntry = updateEntryOf(remainingEntries, writer)
  const entry = createEntry(
    writer,
    'Update',
    previousEntry ? union(previousEntry.fieldsV1, ownFields) : ownFields,
    time,
  )
  const otherEntries = previousEntry ? remainingEntries.filter((other) => other !== previousEntry) : remainingEntries
  return sortEntries(mergeOldestEntries([...removeOwnership(otherEntries, changedFields), entry]))
}

function updateEntryOf(entries: readonly Entry[], writer: Writer): Entry | undefined {
  for (const entry of entries) if (isEntryOf(entry, writer, 'Update')) return entry
  return undefined
}

/** Removes the fields from all entries, and removes entries without fields. */
export function removeOwnership(entries: readonly Entry[], fields: FieldSet): readonly Entry[] {
  if (isEmptySet(fields)) return entries
  const remainingEntries: Entry[] = []
  let hasChanged = false
  for (const entry of entries) {
    const remainingEntry = withFields(entry, difference(entry.fieldsV1, fields))
    if (remainingEntry !== entry) hasChanged = true
    if (ownsFields(remainingEntry)) remainingEntries.push(remainingEntry)
  }
  return hasChanged || remainingEntries.length < entries.length ? remainingEntries : entries
}
