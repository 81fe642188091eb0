// Server-side apply: lays a manager's configuration over the stored object. What the configuration sets becomes the
// manager's; what it set before and does not set any more is removed, unless someone else owns it; what others own
// with another value is a conflict, unless forced. Pure.
import { compare } from './compare.ts'
import { difference, type FieldSet, intersection, isEmptySet, pathsOf, sameSet, union } from './field-set.ts'
import { appliedFields } from './fields-of.ts'
import { type Entry, entryOf, inOrder, isEntryOf, type Writer } from './managers.ts'
import { mergeConfig } from './merge.ts'
import type { ObjectPlace } from './place.ts'
import { removeFields, withParents } from './remove.ts'
import { takeAway } from './track-update.ts'
import { withoutUntracked } from './untracked.ts'

export interface ApplyOptions {
  readonly place: ObjectPlace
  readonly writer: Writer
  /** Now, as times are written. */
  readonly time: string
  readonly force: boolean
  /** Makes a whole object of one that was put together: canonical, with its defaults. */
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
    super(`${conflicts.length} fields belong to others`)
    this.conflicts = conflicts
  }
}

type Value = Record<string, unknown>

export function applyConfig(
  { place, writer, time, force, complete }: ApplyOptions,
  { live, config, entries }: { live: Value; config: Value; entries: readonly Entry[] },
): Applied {
  const previous = entries.find((entry) => isEntryOf(entry, writer, 'Apply'))
  const others = entries.filter((entry) => entry !== previous)
  const owned = withoutUntracked(appliedFields(place, config))
  const merged = mergeConfig(place, live, config)
  const kept = previous ? prune(place, merged, { previous: previous.fieldsV1, owned, others }) : merged
  const object = complete(kept)

  const { removed, modified, added } = compare(place, live, object)
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
 * Removes what this manager set before and nobody sets now. Removing a field takes what is below it along, so what
 * somebody owns, or nobody ever owned, is looked for among the losses and put back.
 */
function prune(
  place: ObjectPlace,
  merged: Value,
  { previous, owned, others }: { previous: FieldSet; owned: FieldSet; others: readonly Entry[] },
): Value {
  const full = (set: FieldSet) => withParents(place, set)
  const fieldsIn = (object: Value) => full(appliedFields(place, object))
  const all = fieldsIn(merged)
  const claimed = others.reduce((set, entry) => union(set, entry.fieldsV1), owned)

  const bare = removeFields(place, merged, full(previous))
  const unclaimed = difference(all, union(fieldsIn(bare), full(claimed)))
  const withClaimed = removeFields(place, merged, unclaimed)
  const lost = difference(all, fieldsIn(withClaimed))
  return removeFields(place, merged, intersection(lost, full(previous)))
}
