// How the ownership of a declared value is divided, derived from its schema. Everything in apply/ works on this.
//   leaf     owned as a whole: scalars, any JSON, atomic lists, maps and objects
//   object   field by field          map    key by key
//   set      value by value          items  item by item, identified by key fields
import type { JsonValue } from '../json-value.ts'
import type { Field, ObjectType, Type } from '../schema.ts'
import { fieldElement, keyElement } from './path-element.ts'

export type Place =
  | { readonly is: 'leaf' }
  | { readonly is: 'set' }
  | { readonly is: 'map'; readonly value: Place }
  | ItemsPlace
  | ObjectPlace

export interface ItemsPlace {
  readonly is: 'items'
  readonly item: Place
  keyOf(item: Record<string, unknown>): string
}

export interface ObjectPlace {
  readonly is: 'object'
  readonly fields: readonly FieldPlace[]
  readonly byElement: ReadonlyMap<string, FieldPlace>
}

interface FieldPlace {
  readonly name: string
  readonly element: string
  /** A function because types may be recursive. */
  place(): Place
  /** The object is present even when empty, so only its fields can be added or removed. */
  readonly isAlwaysThere: boolean
}

const objects = new WeakMap<ObjectType, ObjectPlace>()

export function objectPlace(type: ObjectType): ObjectPlace {
  let known = objects.get(type)
  if (!known) {
    const fields = Object.entries(type.fields).map(([name, field]) => fieldPlace(name, field))
    known = { is: 'object', fields, byElement: new Map(fields.map((field) => [field.element, field])) }
    objects.set(type, known)
  }
  return known
}

function fieldPlace(name: string, field: Field): FieldPlace {
  let place: Place | undefined
  return {
    name,
    element: fieldElement(name),
    place: () => {
      place ??= placeOf(field.type, field)
      return place
    },
    isAlwaysThere: field.type.is === 'object' && (field.required || !field.keepsEmpty),
  }
}

const LEAF_PLACE: Place = { is: 'leaf' }

function placeOf(type: Type, { list, keys, atomic }: Pick<Field, 'list' | 'keys' | 'atomic'> = {}): Place {
  if (atomic) return LEAF_PLACE
  switch (type.is) {
    case 'object':
      return type.atomic && atomic !== false ? LEAF_PLACE : objectPlace(type)
    case 'map':
      return { is: 'map', value: placeOf(type.value) }
    case 'list':
      if (list === 'set') return { is: 'set' }
      if (list === 'map') return itemsPlace(type.item, keys ?? [])
      return LEAF_PLACE
    default:
      return LEAF_PLACE
  }
}

function itemsPlace(item: Type, keys: readonly string[]): ItemsPlace {
  const defaults = new Map(item.is === 'object' ? keys.map((key) => [key, item.fields[key]?.default]) : [])
  const sorted = [...keys].sort()
  return {
    is: 'items',
    item: placeOf(item),
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
