// Compares two states of an object and returns the difference as field sets. Pure.
//   {a: 1, b: 2, c: [x]} → {a: 1, b: 3, d: 4}    modified {b}   removed {c}   added {d}

import { type JsonValue, jsonEquals } from '../json-value.ts'
import type { DeclaredValue } from '../schema.ts'
import { type DraftSet, type FieldSet, insertNode, LEAF } from './field-set.ts'
import { fieldElement, valueElement } from './path-element.ts'
import { type FieldShape, insertField, type ObjectShape, type Shape } from './shape.ts'
import { allFields } from './value-fields.ts'

export interface Comparison {
  readonly removed: FieldSet
  readonly modified: FieldSet
  readonly added: FieldSet
}

export function compareStates(shape: ObjectShape, oldValue: object, newValue: object): Comparison {
  const comparison = { removed: {}, modified: {}, added: {} }
  compareObjects(shape, oldValue as Value, newValue as Value, { ...comparison, path: [] })
  return comparison
}

type Value = Record<string, unknown>

/** The current path, pushed and popped during the walk, and the differences found so far. */
interface Walk {
  readonly removed: DraftSet
  readonly modified: DraftSet
  readonly added: DraftSet
  readonly path: string[]
}

function compareAt(shape: Shape, element: string, oldValue: unknown, newValue: unknown, walk: Walk): void {
  if (oldValue === newValue) return
  walk.path.push(element)
  if (oldValue === undefined) insertNode(walk.added, walk.path, allFields(shape, newValue))
  else if (newValue === undefined) insertNode(walk.removed, walk.path, allFields(shape, oldValue))
  else compareValues(shape, oldValue, newValue, walk)
  walk.path.pop()
}

function compareValues(shape: Shape, oldValue: DeclaredValue, newValue: DeclaredValue, walk: Walk): void {
  switch (shape.is) {
    case 'leaf':
      if (!jsonEquals(oldValue as JsonValue, newValue as JsonValue)) insertNode(walk.modified, walk.path, LEAF)
      return
    case 'object':
      compareObjects(shape, oldValue, newValue, walk)
      return
    case 'map':
      // Plain data inherits no enumerable fields.
      for (const key in oldValue) {
        const newField = ownProperty(newValue, key)
        if (oldValue[key] !== newField) compareAt(shape.value, fieldElement(key), oldValue[key], newField, walk)
      }
      for (const key in newValue) {
        if (!Object.hasOwn(oldValue, key)) compareAt(shape.value, fieldElement(key), undefined, newValue[key], walk)
      }
      return
    case 'set':
      if (jsonEquals(oldValue, newValue)) return // an update copies also the lists that do not change
      compareKeyedItems({ is: 'leaf' }, indexByKey(oldValue, valueElement), indexByKey(newValue, valueElement), walk)
      return
    case 'items':
      if (jsonEquals(oldValue, newValue)) return
      compareKeyedItems(shape.item, indexByKey(oldValue, shape.keyOf), indexByKey(newValue, shape.keyOf), walk)
      return
  }
}

const EMPTY_OBJECT: Value = Object.freeze({})

function compareObjects(shape: ObjectShape, oldObject: Value, newObject: Value, walk: Walk): void {
  for (const field of changedFields(shape, oldObject, newObject)) {
    const { name, element } = field
    let oldValue = oldObject[name]
    let newValue = newObject[name]
    if (field.isAlwaysPresent) {
      oldValue ??= EMPTY_OBJECT
      newValue ??= EMPTY_OBJECT
    }
    compareAt(field.shape(), element, oldValue, newValue, walk)
  }
}

/** Returns the fields whose values are not identical, in the order of the declaration. Visits only fields that an object has. */
function changedFields({ byName }: ObjectShape, oldObject: Value, newObject: Value): readonly FieldShape[] {
  let fields: FieldShape[] | undefined
  for (const name in oldObject) {
    if (oldObject[name] === newObject[name]) continue
    const field = byName.get(name)
    if (field) fields = withField(fields, field)
  }
  for (const name in newObject) {
    if (newObject[name] === undefined || oldObject[name] !== undefined) continue
    const field = byName.get(name)
    if (field) fields = withField(fields, field)
  }
  return fields ?? NO_FIELDS
}

const NO_FIELDS: readonly FieldShape[] = []

function withField(fields: FieldShape[] | undefined, field: FieldShape): FieldShape[] {
  if (!fields) return [field]
  let position = fields.length
  while (position > 0 && fields[position - 1]!.index > field.index) position--
  insertField(fields, position, field)
  return fields
}

type ItemsByKey = ReadonlyMap<string, readonly unknown[]>

function compareKeyedItems(shape: Shape, oldItemsByKey: ItemsByKey, newItemsByKey: ItemsByKey, walk: Walk): void {
  for (const [key, oldItems] of oldItemsByKey) {
    const newItems = newItemsByKey.get(key) ?? []
    if (oldItems.length <= 1 && newItems.length <= 1) compareAt(shape, key, oldItems[0], newItems[0], walk)
    else compareRepeatedItems(shape, key, oldItems, newItems, walk)
  }
  for (const [key, newItems] of newItemsByKey) {
    if (oldItemsByKey.has(key)) continue
    if (newItems.length === 1) compareAt(shape, key, undefined, newItems[0], walk)
    else compareRepeatedItems(shape, key, [], newItems, walk)
  }
}

/** Compares the items of a key that occurs more than once in a list. Such items cannot be distinguished, so they are one leaf. */
function compareRepeatedItems(
  shape: Shape,
  key: string,
  oldItems: readonly unknown[],
  newItems: readonly unknown[],
  walk: Walk,
): void {
  const path = [...walk.path, key]
  const nodeOfItems = (items: readonly unknown[]) => (items.length > 1 ? LEAF : allFields(shape, items[0]))
  if (oldItems.length > 1 && newItems.length > 1) {
    if (!jsonEquals(oldItems as JsonValue, newItems as JsonValue)) insertNode(walk.modified, path, LEAF)
    return
  }
  if (oldItems.length > 0) insertNode(walk.removed, path, nodeOfItems(oldItems))
  if (newItems.length > 0) insertNode(walk.added, path, nodeOfItems(newItems))
}

function indexByKey(items: readonly DeclaredValue[], keyOf: (item: DeclaredValue) => string): ItemsByKey {
  const byKey = new Map<string, unknown[]>()
  for (const item of items) {
    const key = keyOf(item)
    const existingItems = byKey.get(key)
    if (existingItems) existingItems.push(item)
    else byKey.set(key, [item])
  }
  return byKey
}

const ownProperty = (object: Value, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined)
