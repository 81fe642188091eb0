// Compares two values of a declared type, for immutability rules and their messages. Quantities are compared by amount. An
// absent optional field equals an empty one, but an absent pointer field does not.
import { zeroOf } from '../../decode.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { compareQuantities } from '../../quantity.ts'
import type { ListType, MapType, ObjectType, ScalarType, Type } from '../../schema.ts'

export interface Change {
  /** The path within the compared value, such as `resources.requests.storage`. A list is compared as a whole. */
  readonly path: string
  readonly before: unknown
  readonly after: unknown
}

export function changedFields(type: Type, before: unknown, after: unknown): Change[] {
  const changes: Change[] = []
  compare(type, before, after, '', changes)
  return changes
}

export const isSameValue = (type: Type, a: unknown, b: unknown): boolean => changedFields(type, a, b).length === 0

const DESCRIBED_CHANGES_MAX = 10 // the last line has the number of further changes
const VALUE_CHARACTERS_MAX = 200 // longer values are truncated

/** Returns one line per change, such as `  accessModes: ["ReadWriteOnce"] -> ["ReadWriteMany"]`. */
export function describeChanges(changes: readonly Change[]): string {
  const lines = changes
    .slice(0, DESCRIBED_CHANGES_MAX)
    .map(({ path, before, after }) => `  ${path || '(all)'}: ${formatValue(before)} -> ${formatValue(after)}`)
  if (changes.length > DESCRIBED_CHANGES_MAX) lines.push(`  and ${changes.length - DESCRIBED_CHANGES_MAX} more`)
  return lines.join('\n')
}

export interface ImmutableField {
  readonly field: string
  readonly type: Type
  readonly before: unknown
  readonly after: unknown
}

/** Adds the error `field is immutable` if the value changed. */
export function validateImmutableField({ field, type, before, after }: ImmutableField, errors: FieldErrors): void {
  if (!isSameValue(type, before, after)) errors.invalid(field, after, 'field is immutable')
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
      if (!isSameList(type, before, after)) changes.push({ path, before, after })
      break
    case 'json':
      if (JSON.stringify(before) !== JSON.stringify(after)) changes.push({ path, before, after })
      break
    default:
      if (!isSameScalar(type, before, after)) changes.push({ path, before, after })
  }
}

function compareObjects(type: ObjectType, before: unknown, after: unknown, path: string, changes: Change[]): void {
  const oldValue = (before ?? {}) as Record<string, unknown>
  const newValue = (after ?? {}) as Record<string, unknown>
  for (const [name, field] of Object.entries(type.fields)) {
    const fieldPath = childPath(path, name)
    const isPointer = field.keepsEmpty && !field.required
    if (isPointer && (oldValue[name] === undefined) !== (newValue[name] === undefined)) {
      changes.push({ path: fieldPath, before: oldValue[name], after: newValue[name] })
    } else {
      compare(field.type, oldValue[name], newValue[name], fieldPath, changes)
    }
  }
}

function compareMaps(type: MapType, before: unknown, after: unknown, path: string, changes: Change[]): void {
  const oldValue = (before ?? {}) as Record<string, unknown>
  const newValue = (after ?? {}) as Record<string, unknown>
  for (const key of new Set([...Object.keys(oldValue), ...Object.keys(newValue)])) {
    const keyPath = /^[\w-]+$/.test(key) ? childPath(path, key) : `${path}[${key}]`
    if (Object.hasOwn(oldValue, key) && Object.hasOwn(newValue, key)) {
      compare(type.value, oldValue[key], newValue[key], keyPath, changes)
    } else {
      changes.push({
        path: keyPath,
        before: Object.hasOwn(oldValue, key) ? oldValue[key] : undefined,
        after: Object.hasOwn(newValue, key) ? newValue[key] : undefined,
      })
    }
  }
}

function isSameList(type: ListType, before: unknown, after: unknown): boolean {
  const oldValue = (before ?? []) as unknown[]
  const newValue = (after ?? []) as unknown[]
  return (
    oldValue.length === newValue.length &&
    oldValue.every((item, index) => isSameValue(type.item, item, newValue[index]))
  )
}

function isSameScalar(type: ScalarType, before: unknown, after: unknown): boolean {
  const oldValue = before ?? zeroOf(type)
  const newValue = after ?? zeroOf(type)
  if (type.is === 'quantity') return compareQuantities(oldValue as string, newValue as string) === 0
  return oldValue === newValue
}

const childPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

function formatValue(value: unknown): string {
  const text = value === undefined ? '(none)' : JSON.stringify(value)
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text
}
