// Updates managedFields when an object is created, updated or patched: the writer becomes the only owner of the fields that
// it sets, and removed fields lose their owners. Objects without managedFields get none until the first apply.
import { compare } from './compare.ts'
import { difference, type FieldSet, isEmptySet, union } from './field-set.ts'
import { createdFields } from './fields-of.ts'
import {
  type Entry,
  entryOf,
  inOrder,
  isEntryOf,
  mergeOldest,
  ownsSomething,
  type Writer,
  withFields,
} from './managers.ts'
import type { ObjectShape } from './shape.ts'
import { withoutUntracked } from './untracked.ts'

export interface TrackedWrite {
  readonly shape: ObjectShape
  readonly writer: Writer
  /** The current time in RFC 3339. */
  readonly time: string
}

export function trackCreate(write: TrackedWrite, object: object): Entry[] {
  const fields = withoutUntracked(createdFields(write.shape, object as Record<string, unknown>))
  return isEmptySet(fields) ? [] : [entryOf(write.writer, 'Update', fields, write.time)]
}

/** The entries after the write; the same array if nothing changes. */
export function trackUpdate(
  { shape, writer, time }: TrackedWrite,
  entries: readonly Entry[],
  { before, after }: { before: object; after: object },
): readonly Entry[] {
  if (entries.length === 0) return entries
  const { removed, modified, added } = compare(shape, before, after)
  const left = takeAway(entries, removed)
  const set = union(modified, added)
  const mine = withoutUntracked(set)
  if (isEmptySet(mine)) return left === entries ? entries : inOrder(left)
  const previous = left.find((entry) => isEntryOf(entry, writer, 'Update'))
  const entry = entryOf(writer, 'Update', previous ? union(previous.fieldsV1, mine) : mine, time)
  const others = left.filter((other) => other !== previous)
  return inOrder(mergeOldest([...takeAway(others, set), entry]))
}

/** Removes the fields from all entries, and the entries that have no fields left. */
export function takeAway(entries: readonly Entry[], fields: FieldSet): readonly Entry[] {
  if (isEmptySet(fields)) return entries
  const left = entries.map((entry) => withFields(entry, difference(entry.fieldsV1, fields))).filter(ownsSomething)
  return left.length === entries.length && left.every((entry, index) => entry === entries[index]) ? entries : left
}
