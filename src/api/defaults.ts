// Applies the constant defaults of a schema to an object, in place. Skips types that contain no defaults, so that most of
// an object is not visited. Defaults that depend on other fields are in Kind.defaults.
import type { DeclaredValue, ObjectType, Type } from './schema.ts'

export function applyDefaults(type: ObjectType, object: Record<string, unknown>): void {
  for (const [name, applyDefault] of defaultersOf(type)) applyDefault(object, name)
}

type Defaulter = (object: Record<string, unknown>, name: string) => void

const defaultersByType = new WeakMap<ObjectType, readonly (readonly [string, Defaulter])[]>()

function defaultersOf(type: ObjectType): readonly (readonly [string, Defaulter])[] {
  let defaulters = defaultersByType.get(type)
  if (!defaulters) {
    const entries: [string, Defaulter][] = []
    for (const [name, field] of Object.entries(type.fields)) {
      const defaultValue = field.default
      if (defaultValue !== undefined) {
        entries.push([
          name,
          (object) => {
            if (object[name] === undefined)
              object[name] = Array.isArray(defaultValue) ? [...defaultValue] : defaultValue
          },
        ])
      }
      const inner = innerDefaulter(field.type)
      if (inner) entries.push([name, (object) => object[name] !== undefined && inner(object[name])])
    }
    defaulters = entries
    defaultersByType.set(type, defaulters)
  }
  return defaulters
}

function innerDefaulter(type: Type): ((value: DeclaredValue) => void) | undefined {
  if (type.is === 'object') return defaultersOf(type).length > 0 ? (value) => applyDefaults(type, value) : undefined
  if (type.is === 'list') {
    const inner = innerDefaulter(type.item)
    return inner && ((items: unknown[]) => items.forEach(inner))
  }
  if (type.is === 'map') {
    const inner = innerDefaulter(type.value)
    return inner && ((values: Record<string, unknown>) => Object.values(values).forEach(inner))
  }
  return undefined
}
