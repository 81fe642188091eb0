// Test support: prunes cached objects like pruned-fields.ts and throws when a pruned field is read, so that a controller's tests
// fail if the controller needs that field.
import type { Stored } from '../api/kind.ts'
import type { ObjectType, Type } from '../api/schema.ts'
import type { CacheReductions } from '../runtime/index.ts'
import { type FieldTree, KEPT_FIELDS, PRUNED_CACHES } from './pruned-fields.ts'

export const GUARDED_CACHES: CacheReductions = new Map(
  [...PRUNED_CACHES].map(([kind, reduce]) => [
    kind,
    (object: Readonly<Stored>) =>
      guardObject(reduce(object), KEPT_FIELDS.get(kind)!, kind.type, kind.kind) as Readonly<Stored>,
  ]),
)

/** Returns a copy of the object that throws when a declared field outside the tree is read. */
function guardObject(object: object, fields: FieldTree, type: ObjectType, path: string): object {
  const guardedCopy: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(object)) {
    const tree = fields[name]
    const fieldType = type.fields[name]?.type
    guardedCopy[name] =
      typeof tree === 'object' && fieldType ? guardValue(value, tree, fieldType, `${path}.${name}`) : value
  }
  for (const name of Object.keys(type.fields)) {
    if (name in fields) continue
    Object.defineProperty(guardedCopy, name, {
      get() {
        throw new Error(`${path}.${name} is not cached: keep the field in pruned-fields.ts, or do not read it`)
      },
    })
  }
  return Object.freeze(guardedCopy)
}

function guardValue(value: unknown, tree: FieldTree, type: Type, path: string): unknown {
  if (type.is === 'list') return (value as unknown[]).map((item) => guardValue(item, tree, type.item, path))
  return type.is === 'object' ? guardObject(value as object, tree, type, path) : value
}
