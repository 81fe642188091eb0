// Server-side apply: merges a manager's configuration into the stored object. The manager then owns the fields that it
// sets. Fields that it set before and no longer sets are removed, unless another manager owns them. A field that another
// manager owns with a different value is a conflict, unless the apply is forced. Pure.
import { compareStates } from './compare-states.ts'
import { difference, type FieldSet, intersection, isEmptySet, pathsOf, sameSet, union } from './field-set.ts'
import { createEntry, type Entry, isEntryOf, sortEntries, type Writer } from './managed-fields.ts'
import { mergeConfig } from './merge-config.ts'
import { withParents } from './parent-fields.ts'
import { removeFields } from './remove-fields.ts'
import type { ObjectShape } from './shape.ts'
import { removeOwnership } from './track-update.ts'
import { withoutUntrackedFields } from './untracked-fields.ts'
import { appliedFields } from './value-fields.ts'

export interface ApplyOptions {
  readonly shape: ObjectShape
  readonly writer: Writer
  /** The current time in RFC 3339. */
  readonly time: string
  readonly force: boolean
  /** Decodes the merged object into canonical form and applies defaults. */
  complete(object: Value): Value
}

export interface ApplyResult {
  readonly object: Value
  readonly entries: readonly Entry[]
}

/** A field that the configuration would change and another manager owns. */
export interface Conflict {
  /** The entry of the other manager. */
  readonly owner: Entry
  /** The elements of the field's path. */
  readonly path: readonly string[]
}

export class ConflictError extends Error {
  override readonly name = 'ConflictError'
  readonly conflicts: readonly Conflict[]
  constructor(conflicts: readonly Conflict[]) {
    super(`other managers own ${conflicts.length === 1 ? 'a field' : `${conflicts.length} fields`}`)
    this.conflicts = conflicts
  }
}

type Value = Record<string, unknown>

export function applyConfig(
  { shape, writer, time, force, complete }: ApplyOptions,
  { live, config, entries }: { live: Value; config: Value; entries: readonly Entry[] },
): ApplyResult {
  const previousEntry = entries.find((entry) => isEntryOf(entry, writer, 'Apply'))
  const otherEntries = entries.filter((entry) => entry !== previousEntry)
  const ownFields = withoutUntrackedFields(appliedFields(shape, config))
  const mergedObject = mergeConfig(shape, live, config)
  const prunedObject = previousEntry
    ? prune(shape, mergedObject, { previousFields: previousEntry.fieldsV1, ownFields, otherEntries })
    : mergedObject
  const object = complete(prunedObject)

  const { removed, modified, added } = compareStates(shape, live, object)
  const changedFields = union(modified, added)
  const conflicts = findConflicts(otherEntries, changedFields)
  if (conflicts.length > 0 && !force) throw new ConflictError(conflicts)

  const remainingEntries = removeOwnership(otherEntries, union(changedFields, removed))
  if (isEmptySet(ownFields)) return { object, entries: sortEntries(remainingEntries) }
  const isUnchanged =
    previousEntry && isEmptySet(changedFields) && isEmptySet(removed) && sameSet(previousEntry.fieldsV1, ownFields)
  const entry = createEntry(writer, 'Apply', ownFields, isUnchanged ? (previousEntry.time ?? time) : time)
  return { object, entries: sortEntries([...remainingEntries, entry]) }
}

const findConflicts = (otherEntries: readonly Entry[], changedFields: FieldSet): Conflict[] =>
  otherEntries.flatMap((entry) =>
    pathsOf(intersection(entry.fieldsV1, changedFields)).map((path) => ({ owner: entry, path })),
  )

/**
 * Removes the fields that this manager set before and that no manager sets now. Removing a field removes all fields below
 * it, so a field is kept if another manager owns a field below it.
 */
function prune(
  shape: ObjectShape,
  mergedObject: Value,
  {
    previousFields,
    ownFields,
    otherEntries,
  }: { previousFields: FieldSet; ownFields: FieldSet; otherEntries: readonly Entry[] },
): Value {
  const includeParents = (set: FieldSet) => withParents(shape, set)
  const fieldsIn = (object: Value) => includeParents(appliedFields(shape, object))
  const mergedFields = fieldsIn(mergedObject)
  const ownedFields = otherEntries.reduce((set, entry) => union(set, entry.fieldsV1), ownFields)

  const withoutPrevious = removeFields(shape, mergedObject, includeParents(previousFields))
  const unownedFields = difference(mergedFields, union(fieldsIn(withoutPrevious), includeParents(ownedFields)))
  const withoutUnowned = removeFields(shape, mergedObject, unownedFields)
  const removedFields = difference(mergedFields, fieldsIn(withoutUnowned))
  return removeFields(shape, mergedObject, intersection(removedFields, includeParents(previousFields)))
}
