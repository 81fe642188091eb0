// The field set of a value. The callers differ in which nodes between the root and the leaves are members:
//   appliedFields  the fields that a configuration sets: leaves, empty objects, every map entry and list item
//   allFields      the fields that a new value adds: those and every node above them
import type { DeclaredValue } from '../schema.ts'
import { type DraftSet, type FieldSet, ITSELF, isEmptySet, LEAF } from './field-set.ts'
import { fieldElement, valueElement } from './path-element.ts'
import type { ItemsShape, ObjectShape, Shape } from './shape.ts'

type Value = Record<string, unknown>

export const appliedFields = (shape: ObjectShape, config: Value): FieldSet => fieldsBelow(shape, config, false)

/** As a node: the value itself and all fields in it. */
export const allFields = (shape: Shape, value: unknown): FieldSet => nodeAt(shape, value, true, true)!

/** The fields that a new object adds. Objects that are always present, such as metadata, are not members themselves. */
export function createdFields(shape: ObjectShape, object: Value): DraftSet {
  const below: DraftSet = {}
  for (const field of shape.fields) {
    const value = object[field.name]
    if (value === undefined) continue
    const inner = field.shape()
    if (!field.isAlwaysThere || inner.is !== 'object') below[field.element] = allFields(inner, value)
    else {
      const fields = createdFields(inner, value as Value)
      if (!isEmptySet(fields)) below[field.element] = fields
    }
  }
  return below
}

function fieldsBelow(shape: ObjectShape, object: Value, everyNode: boolean, below: DraftSet = {}): DraftSet {
  for (const field of shape.fields) {
    const value = object[field.name]
    if (value === undefined) continue
    const node = nodeAt(field.shape(), value, everyNode, everyNode)
    if (node) below[field.element] = node
  }
  return below
}

/** `counts`: the node is a member of the set even if it has children. */
function nodeAt(shape: Shape, value: DeclaredValue, counts: boolean, everyNode: boolean): FieldSet | undefined {
  switch (shape.is) {
    case 'leaf':
      return LEAF
    case 'object':
      if (isEmptySet(value)) return LEAF
      return closed(fieldsBelow(shape, value, everyNode, opened(counts)))
    case 'map': {
      if (isEmptySet(value)) return LEAF
      const below = opened(counts)
      for (const key of Object.keys(value)) {
        below[fieldElement(key)] = nodeAt(shape.value, value[key], true, everyNode)!
      }
      return below
    }
    case 'set': {
      const below = opened(counts)
      for (const item of value) below[valueElement(item)] = LEAF
      return closed(below)
    }
    case 'items':
      return closed(itemsBelow(shape, value, everyNode, opened(counts)))
  }
}

/** Items with the same key cannot be distinguished: together they are one leaf, owned as a whole. */
function itemsBelow(shape: ItemsShape, items: readonly Value[], everyNode: boolean, below: DraftSet): DraftSet {
  for (const item of items) {
    const key = shape.keyOf(item)
    below[key] = below[key] ? LEAF : nodeAt(shape.item, item, true, everyNode)!
  }
  return below
}

/** Starts and finishes a node. A finished node without children is a leaf if it counts, and undefined otherwise. */
const opened = (counts: boolean): DraftSet => (counts ? { [ITSELF]: LEAF } : {})
function closed(node: DraftSet): FieldSet | undefined {
  let counts = false
  for (const element in node) {
    if (element !== ITSELF) return node
    counts = true
  }
  return counts ? LEAF : undefined
}
