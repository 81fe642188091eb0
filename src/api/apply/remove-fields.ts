// Removes the fields of a set from an object. Removing a field removes everything below it; an atomic value is removed as
// a whole. Pure; unchanged parts are shared.

import { setOwnProperty } from '../json-value.ts'
import type { DeclaredValue } from '../schema.ts'
import { type FieldSet, isMember } from './field-set.ts'
import { fieldElement, valueElement } from './path-element.ts'
import type { ObjectShape, Shape } from './shape.ts'

type Value = Record<string, unknown>

export function removeFields(shape: ObjectShape, object: Value, set: FieldSet): Value {
  return (removeAt(shape, object, set) ?? {}) as Value
}

/** Returns the remaining value, or undefined if it is empty. */
function removeAt(shape: Shape, value: DeclaredValue, set: FieldSet): unknown {
  switch (shape.is) {
    case 'leaf':
      return undefined
    case 'object': {
      const remainingValue: Value = { ...value }
      for (const element in set) {
        const field = shape.byElement.get(element)
        if (!field || remainingValue[field.name] === undefined) continue
        const inner = isMember(set[element]!)
          ? undefined
          : removeAt(field.shape(), remainingValue[field.name], set[element]!)
        if (inner === undefined) delete remainingValue[field.name]
        else remainingValue[field.name] = inner
      }
      return undefinedIfEmpty(remainingValue)
    }
    case 'map': {
      const remainingValue: Value = {}
      for (const key of Object.keys(value)) {
        const node = set[fieldElement(key)]
        if (node && isMember(node)) continue
        const inner = node ? removeAt(shape.value, value[key], node) : value[key]
        if (inner !== undefined) setOwnProperty(remainingValue, key, inner)
      }
      return undefinedIfEmpty(remainingValue)
    }
    case 'set':
      return undefinedIfEmpty(value.filter((item: DeclaredValue) => !set[valueElement(item)]))
    case 'items':
      return undefinedIfEmpty(
        value.flatMap((item: DeclaredValue) => {
          const node = set[shape.keyOf(item)]
          if (!node) return [item]
          if (isMember(node)) return []
          const remainingValue = removeAt(shape.item, item, node)
          return remainingValue === undefined ? [] : [remainingValue]
        }),
      )
  }
}

const undefinedIfEmpty = (remainingValue: object): object | undefined =>
  Object.keys(remainingValue).length > 0 ? remainingValue : undefined
