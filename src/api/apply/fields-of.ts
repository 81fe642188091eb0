// The field set of a value. Which nodes between the root and the leaves count depends on the question:
//   appliedFields  what a configuration sets: leaves, empty objects, and each entry of a map and item of a list
//   allFields      what comes into being with a value: the same and every node on the way
import { type DraftSet, type FieldSet, ITSELF, isEmptySet, LEAF } from './field-set.ts'
import { fieldElement, valueElement } from './path-element.ts'
import type { ItemsPlace, ObjectPlace, Place } from './place.ts'

type Value = Record<string, unknown>

export const appliedFields = (place: ObjectPlace, config: Value): FieldSet => fieldsBelow(place, config, false)

/** As a node: the value itself and everything in it. */
export const allFields = (place: Place, value: unknown): FieldSet => nodeAt(place, value, true, true)!

/** What comes into being with a whole object; parts that are always there do not count themselves. */
export function createdFields(place: ObjectPlace, object: Value): DraftSet {
  const below: DraftSet = {}
  for (const field of place.fields) {
    const value = object[field.name]
    if (value === undefined) continue
    const inner = field.place()
    if (!field.isAlwaysThere || inner.is !== 'object') below[field.element] = allFields(inner, value)
    else {
      const fields = createdFields(inner, value as Value)
      if (!isEmptySet(fields)) below[field.element] = fields
    }
  }
  return below
}

function fieldsBelow(place: ObjectPlace, object: Value, everyNode: boolean, below: DraftSet = {}): DraftSet {
  for (const field of place.fields) {
    const value = object[field.name]
    if (value === undefined) continue
    const node = nodeAt(field.place(), value, everyNode, everyNode)
    if (node) below[field.element] = node
  }
  return below
}

/** `counts`: the node belongs to the set even when there is something below it. */
function nodeAt(place: Place, value: any, counts: boolean, everyNode: boolean): FieldSet | undefined {
  switch (place.is) {
    case 'leaf':
      return LEAF
    case 'object':
      if (isEmptySet(value)) return LEAF
      return closed(fieldsBelow(place, value, everyNode, opened(counts)))
    case 'map': {
      if (isEmptySet(value)) return LEAF
      const below = opened(counts)
      for (const key of Object.keys(value)) {
        below[fieldElement(key)] = nodeAt(place.value, value[key], true, everyNode)!
      }
      return below
    }
    case 'set': {
      const below = opened(counts)
      for (const item of value) below[valueElement(item)] = LEAF
      return closed(below)
    }
    case 'items':
      return closed(itemsBelow(place, value, everyNode, opened(counts)))
  }
}

/** Items that share a key cannot be told apart: together they are one, owned as a whole. */
function itemsBelow(place: ItemsPlace, items: readonly Value[], everyNode: boolean, below: DraftSet): DraftSet {
  for (const item of items) {
    const key = place.keyOf(item)
    below[key] = below[key] ? LEAF : nodeAt(place.item, item, true, everyNode)!
  }
  return below
}

/** A node to be filled in, and one that has been: what got nothing below it is a leaf, or nothing at all. */
const opened = (counts: boolean): DraftSet => (counts ? { [ITSELF]: LEAF } : {})
function closed(node: DraftSet): FieldSet | undefined {
  let counts = false
  for (const element in node) {
    if (element !== ITSELF) return node
    counts = true
  }
  return counts ? LEAF : undefined
}
