// Server-side apply: merges a manager's configuration into the stored object. The manager then owns the fields that it
// sets. Fields that it set before and no longer sets are removed, unless another manager owns them. A field that another
// manager owns with a different value is a conflict, unless the apply is forced. Pure.
import { compare } from './compare.ts'
import { difference, type FieldSet, intersection, isEmptySet, pathsOf, sameSet, union } from './field-set.ts'
import { appliedFields } from './fields-of.ts'
import { type Entry, entryOf, inOrder, isEntryOf, type Writer } from './managers.ts'
import { mergeConfig } from './merge.ts'
import { removeFields, withParents } from './remove.ts'
import type { ObjectShape } from './shape.ts'
import { takeAway } from './track-update.ts'
import { withoutUntracked } from './untracked.ts'

export interface ApplyOptions {
  readonly shape: ObjectShape
  readonly writer: Writer
  /** The current time in RFC 3339. */
  readonly time: string
  readonly force: boolean
  /** Decodes the merged object into canonical form and applies defaults. */
  complete(object: Value): Value
}

export interface Applied {
  readonly object: Value
  readonly entries: readonly Entry[]
}

/** A field that the configuration would change and another manager owns. */
export interface Conflict {
  readonly with: Entry
  /** The elements of the field's path. */
  readonly path: readonly string[]
}

export class ConflictError extends Error {
  override readonly name = 'ConflictError'
  readonly conflicts: readonly Conflict[]
  constructor(conflicts: readonly Conflict[]) {
    super(`${conflicts.length} fields are owned by other managers`)
    this.conflicts = conflicts
  }
}

type Value = Record<string, unknown>

export function applyConfig(
  { shape, writer, time, force, complete }: ApplyOptions,
  { live, config, entries }: { live: Value; config: Value; entries: readonly Entry[] },
): Applied {
  const previous = entries.find((entry) => isEntryOf(entry, writer, 'Apply'))
  const others = entries.filter((entry) => entry !== previous)
  const owned = withoutUntracked(appliedFields(shape, config))
  const merged = mergeConfig(shape, live, config)
  const kept = previous ? prune(shape, merged, { previous: previous.fieldsV1, owned, others }) : merged
  const object = complete(kept)

  const { removed, modified, added } = compare(shape, live, object)
  const set = union(modified, added)
  const conflicts = conflictsOf(others, set)
  if (conflicts.length > 0 && !force) throw new ConflictError(conflicts)

  const left = takeAway(others, union(set, removed))
  if (isEmptySet(owned)) return { object, entries: inOrder(left) }
  const isSame = previous && isEmptySet(set) && isEmptySet(removed) && sameSet(previous.fieldsV1, owned)
  const entry = entryOf(writer, 'Apply', owned, isSame ? (previous.time ?? time) : time)
  return { object, entries: inOrder([...left, entry]) }
}

const conflictsOf = (others: readonly Entry[], set: FieldSet): Conflict[] =>
  others.flatMap((entry) => pathsOf(intersection(entry.fieldsV1, set)).map((path) => ({ with: entry, path })))

/**
 * Removes the fields that this manager set before and no manager sets now. Removing a field removes everything below it,
 * including fields that another manager owns or that have no owner, so the result keeps those.
 */
function prune(
  shape: ObjectShape,
  merged: Value,
  { previous, owned, others }: { previous: FieldSet; owned: FieldSet; others: readonly Entry[] },
): Value {
  const full = (set: FieldSet) => withParents(shape, set)
  const fieldsIn = (object: Value) => full(appliedFields(shape, object))
  const all = fieldsIn(merged)
  const claimed = others.reduce((set, entry) => union(set, entry.fieldsV1), owned)

  const bare = removeFields(shape, merged, full(previous))
  const unclaimed = difference(all, union(fieldsIn(bare), full(claimed)))
  const withClaimed = removeFields(shape, merged, unclaimed)
  const lost = difference(all, fieldsIn(withClaimed))
  return removeFields(shape, merged, intersection(lost, full(previous)))
}
