// Applies the constant defaults of a schema to an object, in place. Skips types that contain no defaults, so that most of
// an object is not visited. Defaults that depend on other fields are in Kind.defaults.
import type { DeclaredValue, ObjectType, Type } from './schema.ts'

export function applyDefaults(type: ObjectType, object: Record<string, unknown>): void {
  for (const [name, fill] of fillersOf(type)) fill(object, name)
}

type Filler = (object: Record<string, unknown>, name: string) => void

const fillersByType = new WeakMap<ObjectType, readonly (readonly [string, Filler])[]>()

function fillersOf(type: ObjectType): readonly (readonly [string, Filler])[] {
  let fillers = fillersByType.get(type)
  if (!fillers) {
    const entries: [string, Filler][] = []
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
      const inner = innerFiller(field.type)
      if (inner) entries.push([name, (object) => object[name] !== undefined && inner(object[name])])
    }
    fillers = entries
    fillersByType.set(type, fillers)
  }
  return fillers
}

function innerFiller(type: Type): ((value: DeclaredValue) => void) | undefined {
  if (type.is === 'object') return fillersOf(type).length > 0 ? (value) => applyDefaults(type, value) : undefined
  if (type.is === 'list') {
    const inner = innerFiller(type.item)
    return inner && ((items: unknown[]) => items.forEach(inner))
  }
  if (type.is === 'map') {
    const inner = innerFiller(type.value)
    return inner && ((values: Record<string, unknown>) => Object.values(values).forEach(inner))
  }
  return undefined
}
