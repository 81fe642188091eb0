// Compares two values of a declared type by the semantics of the API: quantities by amount; an absent optional field equals
// an empty one; an absent pointer field does not. Used by immutability rules and their messages.
import { zeroOf } from '../../decode.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { compareQuantities } from '../../quantity.ts'
import type { ListType, MapType, ObjectType, ScalarType, Type } from '../../schema.ts'

export interface Change {
  /** Relative to the compared value: `resources.requests.storage`. Lists are compared as a whole. */
  readonly path: string
  readonly before: unknown
  readonly after: unknown
}

export function changedFields(type: Type, before: unknown, after: unknown): Change[] {
  const changes: Change[] = []
  compare(type, before, after, '', changes)
  return changes
}

export const sameValue = (type: Type, a: unknown, b: unknown): boolean => changedFields(type, a, b).length === 0

const CHANGES_SHOWN_MAX = 10 // the message gives the number of further changes
const VALUE_CHARACTERS_MAX = 200 // longer values are truncated

/** One line per change: `  accessModes: ["ReadWriteOnce"] -> ["ReadWriteMany"]`. */
export function describeChanges(changes: readonly Change[]): string {
  const lines = changes
    .slice(0, CHANGES_SHOWN_MAX)
    .map(({ path, before, after }) => `  ${path || '(all)'}: ${show(before)} -> ${show(after)}`)
  if (changes.length > CHANGES_SHOWN_MAX) lines.push(`  and ${changes.length - CHANGES_SHOWN_MAX} more`)
  return lines.join('\n')
}

export interface Immutable {
  readonly field: string
  readonly type: Type
  readonly before: unknown
  readonly after: unknown
}

/** Adds the error `field is immutable` if the value changed. */
export function mustNotChange({ field, type, before, after }: Immutable, errors: FieldErrors): void {
  if (!sameValue(type, before, after)) errors.invalid(field, after, 'field is immutable')
}

function compare(type: Type, before: unknown, after: unknown, path: string, changes: Change[]): void {
  if (before === after) return
  switch (type.is) {
    case 'object':
      compareObjects(type, before, after, path, changes)
      break
    case 'map':
      compareMaps(type, before, after, path, changes)
      break
    case 'list':
      if (!sameLists(type, before, after)) changes.push({ path, before, after })
      break
    case 'json':
      if (JSON.stringify(before) !== JSON.stringify(after)) changes.push({ path, before, after })
      break
    default:
      if (!sameScalars(type, before, after)) changes.push({ path, before, after })
  }
}

function compareObjects(type: ObjectType, before: unknown, after: unknown, path: string, changes: Change[]): void {
  const left = (before ?? {}) as Record<string, unknown>
  const right = (after ?? {}) as Record<string, unknown>
  for (const [name, field] of Object.entries(type.fields)) {
    const fieldPath = childPath(path, name)
    const absenceCounts = field.keepsEmpty && !field.required
    if (absenceCounts && (left[name] === undefined) !== (right[name] === undefined)) {
      changes.push({ path: fieldPath, before: left[name], after: right[name] })
    } else {
      compare(field.type, left[name], right[name], fieldPath, changes)
    }
  }
}

function compareMaps(type: MapType, before: unknown, after: unknown, path: string, changes: Change[]): void {
  const left = (before ?? {}) as Record<string, unknown>
  const right = (after ?? {}) as Record<string, unknown>
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const keyPath = /^[\w-]+$/.test(key) ? childPath(path, key) : `${path}[${key}]`
    if (Object.hasOwn(left, key) && Object.hasOwn(right, key)) {
      compare(type.value, left[key], right[key], keyPath, changes)
    } else {
      changes.push({
        path: keyPath,
        before: Object.hasOwn(left, key) ? left[key] : undefined,
        after: Object.hasOwn(right, key) ? right[key] : undefined,
      })
    }
  }
}

function sameLists(type: ListType, before: unknown, after: unknown): boolean {
  const left = (before ?? []) as unknown[]
  const right = (after ?? []) as unknown[]
  return left.length === right.length && left.every((item, index) => sameValue(type.item, item, right[index]))
}

function sameScalars(type: ScalarType, before: unknown, after: unknown): boolean {
  const left = before ?? zeroOf(type)
  const right = after ?? zeroOf(type)
  if (type.is === 'quantity') return compareQuantities(left as string, right as string) === 0
  return left === right
}

const childPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

function show(value: unknown): string {
  const text = value === undefined ? '(none)' : JSON.stringify(value)
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text
}
