// Applies the constant defaults of a declaration, in place, on a private draft. Skips types without any default below them,
// so most of an object is never visited. Defaults that depend on other fields are in Kind.defaults.
import type { DeclaredValue, ObjectType, Type } from './schema.ts'

export function applyDefaults(type: ObjectType, object: Record<string, unknown>): void {
  for (const [name, fill] of fillersOf(type)) fill(object, name)
}

type Filler = (object: Record<string, unknown>, name: string) => void

const cache = new WeakMap<ObjectType, readonly (readonly [string, Filler])[]>()

function fillersOf(type: ObjectType): readonly (readonly [string, Filler])[] {
  let fillers = cache.get(type)
  if (!fillers) {
    const found: [string, Filler][] = []
    for (const [name, field] of Object.entries(type.fields)) {
      const constant = field.default
      if (constant !== undefined) {
        found.push([
          name,
          (object) => {
            if (object[name] === undefined) object[name] = Array.isArray(constant) ? [...constant] : constant
          },
        ])
      }
      const inner = descend(field.type)
      if (inner) found.push([name, (object) => object[name] !== undefined && inner(object[name])])
    }
    fillers = found
    cache.set(type, fillers)
  }
  return fillers
}

function descend(type: Type): ((value: DeclaredValue) => void) | undefined {
  if (type.is === 'object') return fillersOf(type).length > 0 ? (value) => applyDefaults(type, value) : undefined
  if (type.is === 'list') {
    const inner = descend(type.item)
    return inner && ((items: unknown[]) => items.forEach(inner))
  }
  if (type.is === 'map') {
    const inner = descend(type.value)
    return inner && ((values: Record<string, unknown>) => Object.values(values).forEach(inner))
  }
  return undefined
}
