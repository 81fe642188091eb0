// Compares two values of a declared type, for immutability rules and their messages. Quantities are compared by amount. An
// absent optional field equals an empty one, but an absent pointer field does not.
import { fieldsOf, zeroOf } from '../../decode.ts'
import type { FieldErrors } from '../../field-errors.ts'
import { compareQuantities } from '../../quantity.ts'
import type { ListType, MapType, ObjectType, ScalarType, Type } from '../../schema.ts'

export interface Change {
  /** The path within the compared value, such as `resources.requests.storage`. A list is compared as a whole. */
  readonly path: string
  readonly oldValue: unknown
  readonly newValue: unknown
}

export function changedFields(type: Type, oldValue: unknown, newValue: unknown): Change[] {
  const changes: Change[] = []
  compareValues(type, oldValue, newValue, '', changes)
  return changes
}

export const isSameValue = (type: Type, a: unknown, b: unknown): boolean => changedFields(type, a, b).length === 0

const DESCRIBED_CHANGES_MAX = 10 // the last line has the number of further changes
const VALUE_CHARACTERS_MAX = 200 // longer values are truncated

/** Returns one line per change, such as `  accessModes: ["ReadWriteOnce"] -> ["ReadWriteMany"]`. */
export function describeChanges(changes: readonly Change[]): string {
  const lines = changes
    .slice(0, DESCRIBED_CHANGES_MAX)
    .map(({ path, oldValue, newValue }) => `  ${path || '(all)'}: ${formatValue(oldValue)} -> ${formatValue(newValue)}`)
  if (changes.length > DESCRIBED_CHANGES_MAX) lines.push(`  and ${changes.length - DESCRIBED_CHANGES_MAX} more`)
  return lines.join('\n')
}

export interface ImmutableField {
  readonly field: string
  readonly type: Type
  readonly oldValue: unknown
  readonly newValue: unknown
}

/** Adds the error `field is immutable` if the value changed. */
export function validateImmutableField({ field, type, oldValue, newValue }: ImmutableField, errors: FieldErrors): void {
  if (!isSameValue(type, oldValue, newValue)) errors.invalid(field, newValue, 'field is immutable')
}

function compareValues(type: Type, oldValue: unknown, newValue: unknown, path: string, changes: Change[]): void {
  if (oldValue === newValue) return
  switch (type.is) {
    case 'object':
      compareObjects(type, oldValue, newValue, path, changes)
      break
    case 'map':
      compareMaps(type, oldValue, newValue, path, changes)
      break
    case 'list':
      if (!isSameList(type, oldValue, newValue)) changes.push({ path, oldValue, newValue })
      break
    case 'json':
      if (JSON.stringify(oldValue) !== JSON.stringify(newValue)) changes.push({ path, oldValue, newValue })
      break
    default:
      if (!isSameScalar(type, oldValue, newValue)) changes.push({ path, oldValue, newValue })
  }
}

function compareObjects(type: ObjectType, oldValue: unknown, newValue: unknown, path: string, changes: Change[]): void {
  const oldRecord = (oldValue ?? {}) as Record<string, unknown>
  const newRecord = (newValue ?? {}) as Record<string, unknown>
  for (const [name, field] of fieldsOf(type)) {
    if (oldRecord[name] === newRecord[name]) continue
    const fieldPath = childPath(path, name)
    const isPointer = field.keepsEmpty && !field.required
    if (isPointer && (oldRecord[name] === undefined) !== (newRecord[name] === undefined)) {
      changes.push({ path: fieldPath, oldValue: oldRecord[name], newValue: newRecord[name] })
    } else {
      compareValues(field.type, oldRecord[name], newRecord[name], fieldPath, changes)
    }
  }
}

function compareMaps(type: MapType, oldValue: unknown, newValue: unknown, path: string, changes: Change[]): void {
  const oldMap = (oldValue ?? {}) as Record<string, unknown>
  const newMap = (newValue ?? {}) as Record<string, unknown>
  for (const key of new Set([...Object.keys(oldMap), ...Object.keys(newMap)])) {
    const keyPath = /^[\w-]+$/.test(key) ? childPath(path, key) : `${path}[${key}]`
    if (Object.hasOwn(oldMap, key) && Object.hasOwn(newMap, key)) {
      compareValues(type.value, oldMap[key], newMap[key], keyPath, changes)
    } else {
      changes.push({
        path: keyPath,
        oldValue: Object.hasOwn(oldMap, key) ? oldMap[key] : undefined,
        newValue: Object.hasOwn(newMap, key) ? newMap[key] : undefined,
      })
    }
  }
}

function isSameList(type: ListType, oldValue: unknown, newValue: unknown): boolean {
  const oldList = (oldValue ?? []) as unknown[]
  const newList = (newValue ?? []) as unknown[]
  return (
    oldList.length === newList.length && oldList.every((item, index) => isSameValue(type.item, item, newList[index]))
  )
}

function isSameScalar(type: ScalarType, oldValue: unknown, newValue: unknown): boolean {
  const oldScalar = oldValue ?? zeroOf(type)
  const newScalar = newValue ?? zeroOf(type)
  if (type.is === 'quantity') return compareQuantities(oldScalar as string, newScalar as string) === 0
  return oldScalar === newScalar
}

const childPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

function formatValue(value: unknown): string {
  const text = value === undefined ? '(none)' : JSON.stringify(value)
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text
}
