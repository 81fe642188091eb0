// Computes the field set of a value. The functions differ in which nodes between the root and the leaves are members:
//   appliedFields  the fields that a configuration sets: leaves, empty objects and maps, map entries and list items
//   allFields      the fields that a new value adds: the same fields and all their parents
//   createdFields  the fields that a new object adds: as allFields, without objects that are always present, such as metadata
import type { DeclaredValue } from '../schema.ts'
import { type DraftSet, type FieldSet, isEmptySet, LEAF, SELF_ELEMENT } from './field-set.ts'
import { fieldElement, valueElement } from './path-element.ts'
import { type FieldShape, type ItemsShape, insertField, type ObjectShape, type Shape } from './shape.ts'

type Value = Record<string, unknown>

export const appliedFields = (shape: ObjectShape, config: Value): FieldSet => addFields(shape, config, false)

/** Returns the node of a value, with the value itself and all fields in it as members. */
export const allFields = (shape: Shape, value: unknown): FieldSet => nodeOfValue(shape, value, true, true)!

export function createdFields(shape: ObjectShape, object: Value): DraftSet {
  const children: DraftSet = {}
  for (const field of presentFields(shape, object)) {
    const value = object[field.name]
    const inner = field.shape()
    if (!field.isAlwaysPresent || inner.is !== 'object') children[field.element] = allFields(inner, value)
    else {
      const fields = createdFields(inner, value as Value)
      if (!isEmptySet(fields)) children[field.element] = fields
    }
  }
  return children
}

function addFields(shape: ObjectShape, object: Value, includesParents: boolean, children: DraftSet = {}): DraftSet {
  for (const field of presentFields(shape, object)) {
    const node = nodeOfValue(field.shape(), object[field.name], includesParents, includesParents)
    if (node) children[field.element] = node
  }
  return children
}

/** Returns the fields that the object has, in the order of compareElements. Objects have few of the fields that are declared. */
function presentFields({ byName }: ObjectShape, object: Value): readonly FieldShape[] {
  const fields: FieldShape[] = []
  for (const name in object) {
    const field = object[name] === undefined ? undefined : byName.get(name)
    if (!field) continue
    let position = fields.length
    while (position > 0 && fields[position - 1]!.sortedIndex > field.sortedIndex) position--
    insertField(fields, position, field)
  }
  return fields
}

/** Returns the node of a value. With `includesSelf` the node is a member of the set even if it has children. */
function nodeOfValue(
  shape: Shape,
  value: DeclaredValue,
  includesSelf: boolean,
  includesParents: boolean,
): FieldSet | undefined {
  switch (shape.is) {
    case 'leaf':
      return LEAF
    case 'object':
      if (isEmptySet(value)) return LEAF
      return finishNode(addFields(shape, value, includesParents, startNode(includesSelf)))
    case 'map': {
      if (isEmptySet(value)) return LEAF
      const children = startNode(includesSelf)
      for (const key of Object.keys(value)) {
        children[fieldElement(key)] = nodeOfValue(shape.value, value[key], true, includesParents)!
      }
      return children
    }
    case 'set': {
      const children = startNode(includesSelf)
      for (const item of value) children[valueElement(item)] = LEAF
      return finishNode(children)
    }
    case 'items':
      return finishNode(addItems(shape, value, includesParents, startNode(includesSelf)))
  }
}

/** Adds the items of a list. Items with the same key cannot be distinguished, so they are one leaf, owned as a whole. */
function addItems(shape: ItemsShape, items: readonly Value[], includesParents: boolean, children: DraftSet): DraftSet {
  for (const item of items) {
    const key = shape.keyOf(item)
    children[key] = children[key] ? LEAF : nodeOfValue(shape.item, item, true, includesParents)!
  }
  return children
}

const startNode = (includesSelf: boolean): DraftSet => (includesSelf ? { [SELF_ELEMENT]: LEAF } : {})

/** Returns the finished node. A node without children is a leaf if it is a member itself, and undefined otherwise. */
function finishNode(node: DraftSet): FieldSet | undefined {
  let includesSelf = false
  for (const element in node) {
    if (element !== SELF_ELEMENT) return node
    includesSelf = true
  }
  return includesSelf ? LEAF : undefined
}
