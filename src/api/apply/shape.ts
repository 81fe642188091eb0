// Derives from the schema of a value how the ownership of its fields is divided.
//   leaf     owned as a whole: scalars, any JSON, atomic lists, maps and objects
//   object   field by field          map    key by key
//   set      value by value          items  item by item, identified by key fields
import type { JsonValue } from '../json-value.ts'
import type { Field, ObjectType, Type } from '../schema.ts'
import { compareElements, fieldElement, keyElement, sortableElement } from './path-element.ts'

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
  readonly byName: ReadonlyMap<string, FieldShape>
  readonly byElement: ReadonlyMap<string, FieldShape>
}

export interface FieldShape {
  readonly name: string
  /** The position in the declaration. */
  readonly index: number
  /** The position in the order of compareElements, in which field sets are stored. */
  readonly sortedIndex: number
  readonly element: string
  /** Returns the shape of the field's value. A function because types may be recursive. */
  shape(): Shape
  /** Whether the object is present even when empty, so that only its fields can be added or removed. */
  readonly isAlwaysPresent: boolean
}

const objectShapes = new WeakMap<ObjectType, ObjectShape>()

export function objectShape(type: ObjectType): ObjectShape {
  let shape = objectShapes.get(type)
  if (!shape) {
    const sortedElements = Object.keys(type.fields)
      .map((name) => sortableElement(fieldElement(name)))
      .sort(compareElements)
    const sortedIndexes = new Map(sortedElements.map(({ element }, sortedIndex) => [element, sortedIndex]))
    const fields = Object.entries(type.fields).map(([name, field], index) =>
      fieldShape(name, field, { index, sortedIndex: sortedIndexes.get(fieldElement(name))! }),
    )
    shape = {
      is: 'object',
      fields,
      byName: new Map(fields.map((field) => [field.name, field])),
      byElement: new Map(fields.map((field) => [field.element, field])),
    }
    objectShapes.set(type, shape)
  }
  return shape
}

const updatedShapes = new WeakMap<ObjectType, ObjectShape>()

/** The fields of metadata that the server sets after it has tracked an update. */
const SET_AFTER_TRACKING: readonly string[] = ['managedFields', 'resourceVersion']

/** Returns the shape with which an update is compared: without the fields that the server sets afterwards. */
export function updatedShape(type: ObjectType): ObjectShape {
  let shape = updatedShapes.get(type)
  if (!shape) {
    const completeShape = objectShape(type)
    const metadata = completeShape.byName.get('metadata')
    const metadataShape = metadata?.shape()
    shape = completeShape
    if (metadata && metadataShape?.is === 'object') {
      const trackedFields = metadataShape.fields.filter(({ name }) => !SET_AFTER_TRACKING.includes(name))
      const trackedShape = { ...metadataShape, byName: new Map(trackedFields.map((field) => [field.name, field])) }
      const trackedMetadata = { ...metadata, shape: () => trackedShape }
      shape = { ...completeShape, byName: new Map(completeShape.byName).set('metadata', trackedMetadata) }
    }
    updatedShapes.set(type, shape)
  }
  return shape
}

/** Inserts a field into a sorted list. The position is nearly always the end. */
export function insertField(fields: FieldShape[], position: number, field: FieldShape): void {
  if (position === fields.length) fields.push(field)
  else fields.splice(position, 0, field)
}

function fieldShape(
  name: string,
  field: Field,
  { index, sortedIndex }: Pick<FieldShape, 'index' | 'sortedIndex'>,
): FieldShape {
  let shape: Shape | undefined
  return {
    name,
    index,
    sortedIndex,
    element: fieldElement(name),
    shape: () => {
      shape ??= shapeOf(field.type, field)
      return shape
    },
    isAlwaysPresent: field.type.is === 'object' && (field.required || !field.keepsEmpty),
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
  const sortedKeys = [...keys].sort()
  return {
    is: 'items',
    item: shapeOf(item),
    keyOf(listItem) {
      const keyFields: [string, JsonValue][] = []
      for (const key of sortedKeys) {
        const value = listItem[key] ?? defaults.get(key)
        if (value !== undefined) keyFields.push([key, value as JsonValue])
      }
      return keyElement(keyFields)
    },
  }
}
