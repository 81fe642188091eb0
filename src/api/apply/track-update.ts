// Computes managedFields after a create, update or patch: the writer becomes the only owner of the fields that it changes,
// and removed fields have no owner. An object without managedFields stays without them until the first apply.
import { compare } from './compare.ts'
import { difference, type FieldSet, isEmptySet, union } from './field-set.ts'
import {
  createEntry,
  type Entry,
  isEntryOf,
  mergeOldest,
  ownsFields,
  sortEntries,
  type Writer,
  withFields,
} from './managed-fields.ts'
import type { ObjectShape } from './shape.ts'
import { withoutUntracked } from './untracked.ts'
import { createdFields } from './value-fields.ts'

export interface TrackedWrite {
  readonly shape: ObjectShape
  readonly writer: Writer
  /** The current time in RFC 3339. */
  readonly time: string
}

/** Returns the entries of a new object. */
export function trackCreate(write: TrackedWrite, object: object): Entry[] {
  const fields = withoutUntracked(createdFields(write.shape, object as Record<string, unknown>))
  return isEmptySet(fields) ? [] : [createEntry(write.writer, 'Update', fields, write.time)]
}

/** Returns the entries after the write, or the same array if they do not change. */
export function trackUpdate(
  { shape, writer, time }: TrackedWrite,
  entries: readonly Entry[],
  { before, after }: { before: object; after: object },
): readonly Entry[] {
  if (entries.length === 0) return entries
  const { removed, modified, added } = compare(shape, before, after)
  const remaining = removeOwnership(entries, removed)
  const changed = union(modified, added)
  const ownFields = withoutUntracked(changed)
  if (isEmptySet(ownFields)) return remaining === entries ? entries : sortEntries(remaining)
  const previous = remaining.find((entry) => isEntryOf(entry, writer, 'Update'))
  const entry = createEntry(writer, 'Update', previous ? union(previous.fieldsV1, ownFields) : ownFields, time)
  const otherEntries = remaining.filter((candidate) => candidate !== previous)
  return sortEntries(mergeOldest([...removeOwnership(otherEntries, changed), entry]))
}

/** Removes the fields from all entries, and removes entries without fields. */
export function removeOwnership(entries: readonly Entry[], fields: FieldSet): readonly Entry[] {
  if (isEmptySet(fields)) return entries
  const remaining = entries.map((entry) => withFields(entry, difference(entry.fieldsV1, fields))).filter(ownsFields)
  return remaining.length === entries.length && remaining.every((entry, index) => entry === entries[index])
    ? entries
    : remaining
}
