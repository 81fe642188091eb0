// Compares two states of an object and returns the difference as field sets. Pure.
//   {a: 1, b: 2, c: [x]} → {a: 1, b: 3, d: 4}    modified {b}   removed {c}   added {d}

import { type JsonValue, jsonEquals } from '../json-value.ts'
import type { DeclaredValue } from '../schema.ts'
import { type DraftSet, type FieldSet, insertNode, LEAF } from './field-set.ts'
import { allFields } from './fields-of.ts'
import { fieldElement, valueElement } from './path-element.ts'
import type { ObjectShape, Shape } from './shape.ts'

export interface Comparison {
  readonly removed: FieldSet
  readonly modified: FieldSet
  readonly added: FieldSet
}

export function compare(shape: ObjectShape, before: object, after: object): Comparison {
  const found = { removed: {}, modified: {}, added: {} }
  compareObjects(shape, before as Value, after as Value, { ...found, path: [] })
  return found
}

type Value = Record<string, unknown>

/** The current path, pushed and popped during the walk, and the differences found so far. */
interface Walk {
  readonly removed: DraftSet
  readonly modified: DraftSet
  readonly added: DraftSet
  readonly path: string[]
}

function compareAt(shape: Shape, element: string, before: unknown, after: unknown, walk: Walk): void {
  if (before === after) return
  walk.path.push(element)
  if (before === undefined) insertNode(walk.added, walk.path, allFields(shape, after))
  else if (after === undefined) insertNode(walk.removed, walk.path, allFields(shape, before))
  else compareBoth(shape, before, after, walk)
  walk.path.pop()
}

function compareBoth(shape: Shape, before: DeclaredValue, after: DeclaredValue, walk: Walk): void {
  switch (shape.is) {
    case 'leaf':
      if (!jsonEquals(before as JsonValue, after as JsonValue)) insertNode(walk.modified, walk.path, LEAF)
      return
    case 'object':
      compareObjects(shape, before, after, walk)
      return
    case 'map':
      for (const key of Object.keys(before)) {
        compareAt(shape.value, fieldElement(key), before[key], ownOf(after, key), walk)
      }
      for (const key of Object.keys(after)) {
        if (!Object.hasOwn(before, key)) compareAt(shape.value, fieldElement(key), undefined, after[key], walk)
      }
      return
    case 'set':
      compareKeyed({ is: 'leaf' }, indexed(before, valueElement), indexed(after, valueElement), walk)
      return
    case 'items':
      compareKeyed(shape.item, indexed(before, shape.keyOf), indexed(after, shape.keyOf), walk)
      return
  }
}

const NOTHING: Value = Object.freeze({})

function compareObjects(shape: ObjectShape, before: Value, after: Value, walk: Walk): void {
  for (const field of shape.fields) {
    const { name, element } = field
    let was = before[name]
    let is = after[name]
    if (was === is) continue
    if (field.isAlwaysThere) {
      was ??= NOTHING
      is ??= NOTHING
    }
    compareAt(field.shape(), element, was, is, walk)
  }
}

type Indexed = ReadonlyMap<string, readonly unknown[]>

function compareKeyed(shape: Shape, before: Indexed, after: Indexed, walk: Walk): void {
  for (const [key, was] of before) {
    const is = after.get(key) ?? []
    if (was.length <= 1 && is.length <= 1) compareAt(shape, key, was[0], is[0], walk)
    else compareRepeated(shape, key, was, is, walk)
  }
  for (const [key, is] of after) {
    if (before.has(key)) continue
    if (is.length === 1) compareAt(shape, key, undefined, is[0], walk)
    else compareRepeated(shape, key, [], is, walk)
  }
}

/** Several items with the same key cannot be distinguished: on that side they count as one leaf. */
function compareRepeated(shape: Shape, key: string, was: readonly unknown[], is: readonly unknown[], walk: Walk): void {
  const path = [...walk.path, key]
  const nodeOfThem = (items: readonly unknown[]) => (items.length > 1 ? LEAF : allFields(shape, items[0]))
  if (was.length > 1 && is.length > 1) {
    if (!jsonEquals(was as JsonValue, is as JsonValue)) insertNode(walk.modified, path, LEAF)
    return
  }
  if (was.length > 0) insertNode(walk.removed, path, nodeOfThem(was))
  if (is.length > 0) insertNode(walk.added, path, nodeOfThem(is))
}

function indexed(items: readonly DeclaredValue[], keyOf: (item: DeclaredValue) => string): Indexed {
  const byKey = new Map<string, unknown[]>()
  for (const item of items) {
    const key = keyOf(item)
    const known = byKey.get(key)
    if (known) known.push(item)
    else byKey.set(key, [item])
  }
  return byKey
}

const ownOf = (object: Value, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined)
