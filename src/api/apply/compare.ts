// Compares two states of an object and returns the difference as field sets. Pure.
//   {a: 1, b: 2, c: [x]} → {a: 1, b: 3, d: 4}    modified {b}   removed {c}   added {d}

import { type JsonValue, jsonEquals } from '../json-value.ts'
import type { DeclaredValue } from '../schema.ts'
import { type DraftSet, type FieldSet, insertNode, LEAF } from './field-set.ts'
import { allFields } from './fields-of.ts'
import { fieldElement, valueElement } from './path-element.ts'
import type { ObjectPlace, Place } from './place.ts'

export interface Comparison {
  readonly removed: FieldSet
  readonly modified: FieldSet
  readonly added: FieldSet
}

export function compare(place: ObjectPlace, before: object, after: object): Comparison {
  const found = { removed: {}, modified: {}, added: {} }
  compareObjects(place, before as Value, after as Value, { ...found, path: [] })
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

function compareAt(place: Place, element: string, before: unknown, after: unknown, walk: Walk): void {
  if (before === after) return
  walk.path.push(element)
  if (before === undefined) insertNode(walk.added, walk.path, allFields(place, after))
  else if (after === undefined) insertNode(walk.removed, walk.path, allFields(place, before))
  else compareBoth(place, before, after, walk)
  walk.path.pop()
}

function compareBoth(place: Place, before: DeclaredValue, after: DeclaredValue, walk: Walk): void {
  switch (place.is) {
    case 'leaf':
      if (!jsonEquals(before as JsonValue, after as JsonValue)) insertNode(walk.modified, walk.path, LEAF)
      return
    case 'object':
      compareObjects(place, before, after, walk)
      return
    case 'map':
      for (const key of Object.keys(before)) {
        compareAt(place.value, fieldElement(key), before[key], ownOf(after, key), walk)
      }
      for (const key of Object.keys(after)) {
        if (!Object.hasOwn(before, key)) compareAt(place.value, fieldElement(key), undefined, after[key], walk)
      }
      return
    case 'set':
      compareKeyed({ is: 'leaf' }, indexed(before, valueElement), indexed(after, valueElement), walk)
      return
    case 'items':
      compareKeyed(place.item, indexed(before, place.keyOf), indexed(after, place.keyOf), walk)
      return
  }
}

const NOTHING: Value = Object.freeze({})

function compareObjects(place: ObjectPlace, before: Value, after: Value, walk: Walk): void {
  for (const field of place.fields) {
    const { name, element } = field
    let was = before[name]
    let is = after[name]
    if (was === is) continue
    if (field.isAlwaysThere) {
      was ??= NOTHING
      is ??= NOTHING
    }
    compareAt(field.place(), element, was, is, walk)
  }
}

type Indexed = ReadonlyMap<string, readonly unknown[]>

function compareKeyed(place: Place, before: Indexed, after: Indexed, walk: Walk): void {
  for (const [key, was] of before) {
    const is = after.get(key) ?? []
    if (was.length <= 1 && is.length <= 1) compareAt(place, key, was[0], is[0], walk)
    else compareRepeated(place, key, was, is, walk)
  }
  for (const [key, is] of after) {
    if (before.has(key)) continue
    if (is.length === 1) compareAt(place, key, undefined, is[0], walk)
    else compareRepeated(place, key, [], is, walk)
  }
}

/** Several items with the same key cannot be told apart: on that side they count as one leaf. */
function compareRepeated(place: Place, key: string, was: readonly unknown[], is: readonly unknown[], walk: Walk): void {
  const path = [...walk.path, key]
  const nodeOfThem = (items: readonly unknown[]) => (items.length > 1 ? LEAF : allFields(place, items[0]))
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
