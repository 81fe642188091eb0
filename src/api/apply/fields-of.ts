// The field set of a value. Which nodes between the root and the leaves count depends on the question:
//   appliedFields  what a configuration sets: leaves, empty objects, and each entry of a map and item of a list
//   allFields      what comes into being with a value: the same and every node on the way
import { type DraftSet, type FieldSet, LEAF, nodeOf } from './field-set.ts'
import { fieldElement, valueElement } from './path-element.ts'
import type { ItemsPlace, ObjectPlace, Place } from './place.ts'

type Value = Record<string, unknown>

export const appliedFields = (place: ObjectPlace, config: Value): FieldSet => fieldsBelow(place, config, false)

/** As a node: the value itself and everything in it. */
export const allFields = (place: Place, value: unknown): FieldSet => nodeAt(place, value, true, true)!

function fieldsBelow(place: ObjectPlace, object: Value, everyNode: boolean): DraftSet {
  const below: DraftSet = {}
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
    case 'object': {
      const below = fieldsBelow(place, value, everyNode)
      return nodeOf(counts || Object.keys(value).length === 0, below)
    }
    case 'map': {
      const below: DraftSet = {}
      const keys = Object.keys(value)
      for (const key of keys) below[fieldElement(key)] = nodeAt(place.value, value[key], true, everyNode)!
      return nodeOf(counts || keys.length === 0, below)
    }
    case 'set': {
      const below: DraftSet = {}
      for (const item of value) below[valueElement(item)] = LEAF
      return nodeOf(counts, below)
    }
    case 'items':
      return nodeOf(counts, itemsBelow(place, value, everyNode))
  }
}

/** Items that share a key cannot be told apart: together they are one, owned as a whole. */
function itemsBelow(place: ItemsPlace, items: readonly Value[], everyNode: boolean): DraftSet {
  const below: DraftSet = {}
  for (const item of items) {
    const key = place.keyOf(item)
    below[key] = below[key] ? LEAF : nodeAt(place.item, item, true, everyNode)!
  }
  return below
}
