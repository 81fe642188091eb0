// Adds to a field set the object fields that contain its members.
import { type FieldSet, isMember, SELF_ELEMENT } from './field-set.ts'
import type { Shape } from './shape.ts'

export function withParents(shape: Shape, set: FieldSet): FieldSet {
  const result: Record<string, FieldSet> = {}
  for (const element in set) {
    const node = set[element]!
    if (element === SELF_ELEMENT) {
      result[SELF_ELEMENT] = node
      continue
    }
    const inner = childShape(shape, element)
    const children = inner ? withParents(inner, node) : node
    result[element] = shape.is === 'object' && inner && !isMember(node) ? { [SELF_ELEMENT]: {}, ...children } : children
  }
  return result
}

function childShape(shape: Shape, element: string): Shape | undefined {
  switch (shape.is) {
    case 'object':
      return shape.byElement.get(element)?.shape()
    case 'map':
      return shape.value
    case 'items':
      return shape.item
    default:
      return undefined
  }
}
