// Applies the constant defaults of a schema to an object. Skips types that contain no defaults, so that most of an object is
// not visited. Defaults that depend on other fields are in Kind.defaults.
import type { DeclaredValue, ObjectType, Type } from './schema.ts'

type Fields = Readonly<Record<string, unknown>>

/** Applies the defaults in place. Nested objects without a default are replaced. */
export function applyDefaults(type: ObjectType, object: Record<string, unknown>): void {
  const defaulted = withDefaults(type, object)
  if (defaulted !== object) Object.assign(object, defaulted)
}

/** Returns the same object if it has all its defaults, otherwise a copy that shares all parts that have theirs. */
export function withDefaults<T extends Fields>(type: ObjectType, object: T): T {
  let defaulted: Record<string, unknown> | undefined
  for (const [name, valueWithDefaults] of defaultersOf(type)) {
    const value = object[name]
    const nextValue = valueWithDefaults(value)
    if (nextValue === value) continue
    defaulted ??= { ...object }
    defaulted[name] = nextValue
  }
  return (defaulted ?? object) as T
}

/** Returns the same value if it has all its defaults. */
type Defaulter = (value: DeclaredValue) => unknown

const defaultersByType = new WeakMap<ObjectType, readonly (readonly [string, Defaulter])[]>()

function defaultersOf(type: ObjectType): readonly (readonly [string, Defaulter])[] {
  let defaulters = defaultersByType.get(type)
  if (!defaulters) {
    const entries: [string, Defaulter][] = []
    for (const [name, field] of Object.entries(type.fields)) {
      const { default: defaultValue } = field
      if (defaultValue !== undefined) {
        const createDefault = () => (Array.isArray(defaultValue) ? [...defaultValue] : defaultValue)
        entries.push([name, (value) => (value === undefined ? createDefault() : value)])
      }
      const inner = innerDefaulter(field.type)
      if (inner) entries.push([name, (value) => (value === undefined ? value : inner(value))])
    }
    defaulters = entries
    defaultersByType.set(type, defaulters)
  }
  return defaulters
}

function innerDefaulter(type: Type): Defaulter | undefined {
  if (type.is === 'object') return defaultersOf(type).length > 0 ? (value) => withDefaults(type, value) : undefined
  if (type.is === 'list') {
    const inner = innerDefaulter(type.item)
    return inner && ((items: readonly unknown[]) => listWithDefaults(items, inner))
  }
  if (type.is === 'map') {
    const inner = innerDefaulter(type.value)
    return inner && ((values: Fields) => mapWithDefaults(values, inner))
  }
  return undefined
}

function listWithDefaults(items: readonly unknown[], inner: Defaulter): readonly unknown[] {
  let defaulted: unknown[] | undefined
  for (let index = 0; index < items.length; index++) {
    const item = inner(items[index])
    if (item === items[index]) continue
    defaulted ??= [...items]
    defaulted[index] = item
  }
  return defaulted ?? items
}

function mapWithDefaults(values: Fields, inner: Defaulter): Fields {
  let defaulted: Record<string, unknown> | undefined
  for (const name of Object.keys(values)) {
    const value = inner(values[name])
    if (value === values[name]) continue
    defaulted ??= { ...values }
    defaulted[name] = value
  }
  return defaulted ?? values
}
