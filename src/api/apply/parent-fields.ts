// Adds the object fields above the members to a field set.
import { type FieldSet, ITSELF, isMember } from './field-set.ts'
import type { Shape } from './shape.ts'

export function withParents(shape: Shape, set: FieldSet): FieldSet {
  const result: Record<string, FieldSet> = {}
  for (const element in set) {
    const node = set[element]!
    if (element === ITSELF) {
      result[ITSELF] = node
      continue
    }
    const inner = childShape(shape, element)
    const children = inner ? withParents(inner, node) : node
    result[element] = shape.is === 'object' && inner && !isMember(node) ? { [ITSELF]: {}, ...children } : children
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
