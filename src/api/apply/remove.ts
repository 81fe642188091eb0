// Removes the fields of a set from an object. Removing a field removes everything below it; an atomic value is removed as
// a whole. Pure; unchanged parts are shared.

import { setOwn } from '../json-value.ts'
import type { DeclaredValue } from '../schema.ts'
import { type FieldSet, ITSELF, isMember } from './field-set.ts'
import { fieldElement, valueElement } from './path-element.ts'
import type { ObjectShape, Shape } from './shape.ts'

type Value = Record<string, unknown>

export function removeFields(shape: ObjectShape, object: Value, set: FieldSet): Value {
  return (removeAt(shape, object, set) ?? {}) as Value
}

/** The rest of the value, or undefined if nothing is left. */
function removeAt(shape: Shape, value: DeclaredValue, set: FieldSet): unknown {
  switch (shape.is) {
    case 'leaf':
      return undefined
    case 'object': {
      const left: Value = { ...value }
      for (const element in set) {
        const field = shape.byElement.get(element)
        if (!field || left[field.name] === undefined) continue
        const inner = isMember(set[element]!) ? undefined : removeAt(field.shape(), left[field.name], set[element]!)
        if (inner === undefined) delete left[field.name]
        else left[field.name] = inner
      }
      return orNothing(left)
    }
    case 'map': {
      const left: Value = {}
      for (const key of Object.keys(value)) {
        const node = set[fieldElement(key)]
        if (node && isMember(node)) continue
        const inner = node ? removeAt(shape.value, value[key], node) : value[key]
        if (inner !== undefined) setOwn(left, key, inner)
      }
      return orNothing(left)
    }
    case 'set':
      return orNothing(value.filter((item: DeclaredValue) => !set[valueElement(item)]))
    case 'items':
      return orNothing(
        value.flatMap((item: DeclaredValue) => {
          const node = set[shape.keyOf(item)]
          if (!node) return [item]
          if (isMember(node)) return []
          const left = removeAt(shape.item, item, node)
          return left === undefined ? [] : [left]
        }),
      )
  }
}

const orNothing = (left: object): object | undefined => (Object.keys(left).length > 0 ? left : undefined)

/** The same set, with every object field above a member as a member too. */
export function withParents(shape: Shape, set: FieldSet): FieldSet {
  const full: Record<string, FieldSet> = {}
  for (const element in set) {
    const node = set[element]!
    if (element === ITSELF) {
      full[ITSELF] = node
      continue
    }
    const inner = shapeBelow(shape, element)
    const below = inner ? withParents(inner, node) : node
    full[element] = shape.is === 'object' && inner && !isMember(node) ? { [ITSELF]: {}, ...below } : below
  }
  return full
}

function shapeBelow(shape: Shape, element: string): Shape | undefined {
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
