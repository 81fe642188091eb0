// How the ownership of a declared value is divided, derived from its schema. Everything in apply/ works on this.
//   leaf     owned as a whole: scalars, any JSON, atomic lists, maps and objects
//   object   field by field          map    key by key
//   set      value by value          items  item by item, identified by key fields
import type { JsonValue } from '../json-value.ts'
import type { Field, ObjectType, Type } from '../schema.ts'
import { fieldElement, keyElement } from './path-element.ts'

export type Shape =
  | { readonly is: 'leaf' }
  | { readonly is: 'set' }
  | { readonly is: 'map'; readonly value: Shape }
  | ItemsShape
  | ObjectShape

export interface ItemsShape {
  readonly is: 'items'
  readonly item: Shape
  keyOf(item: Record<string, unknown>): string
}

export interface ObjectShape {
  readonly is: 'object'
  readonly fields: readonly FieldShape[]
  readonly byElement: ReadonlyMap<string, FieldShape>
}

interface FieldShape {
  readonly name: string
  readonly element: string
  /** A function because types may be recursive. */
  shape(): Shape
  /** The object is present even when empty, so only its fields can be added or removed. */
  readonly isAlwaysThere: boolean
}

const objects = new WeakMap<ObjectType, ObjectShape>()

export function objectShape(type: ObjectType): ObjectShape {
  let known = objects.get(type)
  if (!known) {
    const fields = Object.entries(type.fields).map(([name, field]) => fieldShape(name, field))
    known = { is: 'object', fields, byElement: new Map(fields.map((field) => [field.element, field])) }
    objects.set(type, known)
  }
  return known
}

function fieldShape(name: string, field: Field): FieldShape {
  let shape: Shape | undefined
  return {
    name,
    element: fieldElement(name),
    shape: () => {
      shape ??= shapeOf(field.type, field)
      return shape
    },
    isAlwaysThere: field.type.is === 'object' && (field.required || !field.keepsEmpty),
  }
}

const LEAF_SHAPE: Shape = { is: 'leaf' }

function shapeOf(type: Type, { list, keys, atomic }: Pick<Field, 'list' | 'keys' | 'atomic'> = {}): Shape {
  if (atomic) return LEAF_SHAPE
  switch (type.is) {
    case 'object':
      return type.atomic && atomic !== false ? LEAF_SHAPE : objectShape(type)
    case 'map':
      return { is: 'map', value: shapeOf(type.value) }
    case 'list':
      if (list === 'set') return { is: 'set' }
      if (list === 'map') return itemsShape(type.item, keys ?? [])
      return LEAF_SHAPE
    default:
      return LEAF_SHAPE
  }
}

function itemsShape(item: Type, keys: readonly string[]): ItemsShape {
  const defaults = new Map(item.is === 'object' ? keys.map((key) => [key, item.fields[key]?.default]) : [])
  const sorted = [...keys].sort()
  return {
    is: 'items',
    item: shapeOf(item),
    keyOf(one) {
      const found: [string, JsonValue][] = []
      for (const key of sorted) {
        const value = one[key] ?? defaults.get(key)
        if (value !== undefined) found.push([key, value as JsonValue])
      }
      return keyElement(found)
    },
  }
}
