// Strategic merge patch: a merge patch in which some lists are merged item by item, by a key of the items.
// The rules come from a MergeShape, so that this file does not depend on the schema of kinds.
// Pure: the document and the patch are not modified. strategic-order.ts determines the order of merged lists.
import {
  getOwnProperty,
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  setOwnProperty,
} from '../json-value.ts'
import { PatchError } from './patch-error.ts'
import { orderItems } from './strategic-order.ts'

/** How the fields of an object are merged. Unknown fields are merged as plain JSON: maps merge, lists are replaced. */
export interface MergeShape {
  field(name: string): MergeField | undefined
}

export interface MergeField {
  /** Merge key of a list, or '' for a list of scalars. A list without it is replaced. */
  readonly merge?: string
  /** How the object, or each item of the list, is merged. */
  readonly shape?: MergeShape
}

// Directives, which are not part of the result:
//   $patch: replace | delete | merge    on an object: replace it, delete it, merge (the default)
//                                       on an item of a merged list: delete all others, delete this one, merge
//   $retainKeys: [k, …]                 delete all keys that are not listed
//   $setElementOrder/<list>: [k, …]     the order of the listed items
//   $deleteFromPrimitiveList/<list>     scalars to delete
export function strategicMerge(document: JsonObject, patch: JsonValue, shape: MergeShape): JsonObject {
  if (!isJsonObject(patch)) throw new PatchError('malformed', 'a strategic merge patch must be an object')
  return mergeObject(document, patch, { shape, path: '' })
}

/** The rules of the value being merged, and its path for messages. */
interface Place {
  readonly shape?: MergeShape
  readonly path: string
}

function mergeObject(original: JsonObject, patch: JsonObject, place: Place): JsonObject {
  const directive = directiveOf(patch, place)
  if (directive === 'delete') return {}
  const base = directive === 'replace' ? {} : retainKeys(original, patch, place)
  const merged: { [key: string]: JsonValue } = { ...base }
  for (const [key, change] of Object.entries(patch)) {
    if (isDirective(key)) continue
    if (change === null) delete merged[key]
    else setField(merged, key, mergeField(getOwnProperty(base, key), change, patch, inside(place, key)))
  }
  for (const [key, change] of Object.entries(patch)) {
    const ordered = listNamedBy(key, ORDER_PREFIX, place)
    if (ordered !== undefined) orderField(merged, ordered, change, { base, place })
  }
  for (const [key, change] of Object.entries(patch)) {
    const shortened = listNamedBy(key, DELETE_PREFIX, place)
    if (shortened !== undefined) deleteScalars(merged, shortened, change, place)
  }
  return merged
}

function setField(merged: { [key: string]: JsonValue }, key: string, value: JsonValue | undefined): void {
  if (value === undefined) delete merged[key]
  else setOwnProperty(merged, key, value)
}

type FieldPlace = MergeField & { readonly key: string; readonly path: string }

/** The new value of the field, or undefined if the patch deletes it. */
function mergeField(
  original: JsonValue | undefined,
  change: JsonValue,
  patch: JsonObject,
  place: FieldPlace,
): JsonValue | undefined {
  if (isJsonObject(change)) {
    if (!isJsonObject(original) && directiveOf(change, place) === 'delete') return undefined
    return mergeObject(isJsonObject(original) ? original : {}, change, place)
  }
  if (!isJsonArray(change)) return change
  checkOrder(change, getOwnProperty(patch, `${ORDER_PREFIX}/${place.key}`), place)
  const before = isJsonArray(original) ? original : []
  if (place.merge === undefined) return withoutDirectives(change, place)
  return place.merge === '' ? mergeScalars(before, change, place) : mergeItems(before, change, place)
}

// Lists

function mergeScalars(before: readonly JsonValue[], change: readonly JsonValue[], place: FieldPlace): JsonValue[] {
  for (const item of change) {
    if (typeof item === 'object' && item !== null)
      throw inapplicable(place, 'is a list of scalars, but the patch contains an object or a list')
  }
  const items = [...new Set([...before, ...change])]
  return orderItems({ items, wanted: change, before, keyOf: (item) => item })
}

function mergeItems(before: readonly JsonValue[], change: readonly JsonValue[], place: FieldPlace): JsonValue[] {
  const mergeKey = place.merge!
  const keyOf = (item: JsonValue) => keyOfItem(item, mergeKey, place)
  const directives = change.map((item) => (isJsonObject(item) ? directiveOf(item, place) : undefined))
  const deleted = new Set(change.filter((_, i) => directives[i] === 'delete').map(keyOf))
  const changes = change.filter((_, i) => directives[i] !== 'delete' && directives[i] !== 'replace') as JsonObject[]

  const kept = directives.includes('replace') ? [] : before.filter((item) => !deleted.has(keyOf(item)))
  const items = [...kept] as JsonObject[]
  const positions = new Map<unknown, number>()
  for (const [i, item] of items.entries()) if (!positions.has(keyOf(item))) positions.set(keyOf(item), i)
  for (const one of changes) {
    const key = keyOf(one)
    const position = positions.get(key) ?? items.length
    positions.set(key, position)
    const itemPlace = { shape: place.shape, path: `${place.path}[${mergeKey}=${JSON.stringify(key)}]` }
    items[position] = mergeObject(items[position] ?? {}, one, itemPlace)
  }
  return orderItems({ items, wanted: changes.map(keyOf), before: before.map(keyOf), keyOf })
}

function keyOfItem(item: JsonValue, mergeKey: string, { path }: Place): JsonValue {
  if (!isJsonObject(item)) throw inapplicable({ path }, 'is merged by key, so its items must be objects')
  const key = getOwnProperty(item, mergeKey)
  if (key === undefined || key === null) throw inapplicable({ path }, `has an item without its merge key "${mergeKey}"`)
  if (typeof key === 'object') throw inapplicable({ path }, `has an item whose merge key "${mergeKey}" is not a scalar`)
  return key
}

// $setElementOrder

function orderField(
  merged: { [key: string]: JsonValue },
  key: string,
  order: JsonValue,
  { base, place }: { base: JsonObject; place: Place },
): void {
  const field = inside(place, key)
  if (!isJsonArray(order)) throw inapplicable(field, `has a ${ORDER_PREFIX} that is not a list`)
  const items = getOwnProperty(merged, key)
  if (!isJsonArray(items) || field.merge === undefined) return // replaced as a whole, so it has the order of the patch already
  const keyOf = (item: JsonValue) => (field.merge === '' ? item : keyOfItem(item, field.merge!, field))
  const before = getOwnProperty(base, key)
  const keysBefore = isJsonArray(before) ? before.map(keyOf) : []
  setOwnProperty(merged, key, orderItems({ items, wanted: order.map(keyOf), before: keysBefore, keyOf }))
}

/** Every item of the patch must be listed in its $setElementOrder, in the same order. */
function checkOrder(change: readonly JsonValue[], order: JsonValue | undefined, place: FieldPlace): void {
  if (place.merge === undefined || !isJsonArray(order) || order.length === 0) return
  const keyOf = (item: JsonValue) => (place.merge === '' ? item : keyOfItem(item, place.merge!, place))
  const ordered = order.map(keyOf).values()
  for (const item of change) {
    if (isJsonObject(item) && Object.hasOwn(item, '$patch')) continue
    const key = keyOf(item)
    let next = ordered.next()
    while (!next.done && next.value !== key) next = ordered.next()
    if (next.done) {
      throw inapplicable(
        place,
        `has ${JSON.stringify(key)} in the patch, but not at the same position in its ${ORDER_PREFIX}`,
      )
    }
  }
}

// The other directives

const ORDER_PREFIX = '$setElementOrder'
const DELETE_PREFIX = '$deleteFromPrimitiveList'

const isDirective = (key: string): boolean =>
  key === '$patch' || key === '$retainKeys' || key.startsWith(ORDER_PREFIX) || key.startsWith(DELETE_PREFIX)

function directiveOf(patch: JsonObject, place: Place): 'replace' | 'delete' | 'merge' {
  const directive = getOwnProperty(patch, '$patch') ?? 'merge'
  if (directive === 'replace' || directive === 'delete' || directive === 'merge') return directive
  throw inapplicable(
    place,
    `has the unknown directive $patch: ${JSON.stringify(directive)}; expected replace, delete or merge`,
  )
}

function retainKeys(original: JsonObject, patch: JsonObject, place: Place): JsonObject {
  const keys = getOwnProperty(patch, '$retainKeys')
  if (keys === undefined) return original
  if (!isJsonArray(keys)) throw inapplicable(place, 'has a $retainKeys that is not a list')
  const retained = new Set<unknown>(keys)
  for (const [key, change] of Object.entries(patch)) {
    if (change === null || isDirective(key) || retained.has(key)) continue
    throw inapplicable(place, `contains "${key}", which is not listed in its $retainKeys`)
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => retained.has(key)))
}

function listNamedBy(key: string, prefix: string, place: Place): string | undefined {
  if (!key.startsWith(prefix)) return undefined
  if (key[prefix.length] !== '/') throw inapplicable(place, `has "${key}", which must have the form ${prefix}/<list>`)
  return key.slice(prefix.length + 1)
}

function deleteScalars(merged: { [key: string]: JsonValue }, key: string, change: JsonValue, place: Place): void {
  if (!isJsonArray(change)) throw inapplicable(inside(place, key), `has a ${DELETE_PREFIX} that is not a list`)
  const items = getOwnProperty(merged, key)
  if (isJsonArray(items))
    setOwnProperty(
      merged,
      key,
      items.filter((item) => !change.includes(item)),
    )
}

/** The list of the patch without directives and without nulls in objects. */
function withoutDirectives(list: readonly JsonValue[], place: Place): JsonValue[] {
  return list.flatMap((item) => {
    if (isJsonArray(item)) return [withoutDirectives(item, place)]
    if (!isJsonObject(item)) return [item]
    if (Object.hasOwn(item, '$patch') && directiveOf(item, place) !== 'merge') return []
    return [mergeObject({}, item, { path: place.path })]
  })
}

const inside = ({ shape, path }: Place, key: string): FieldPlace => ({
  ...shape?.field(key),
  key,
  path: path === '' ? key : `${path}.${key}`,
})

const inapplicable = ({ path }: { path: string }, because: string): PatchError =>
  new PatchError(
    'inapplicable',
    `cannot apply the strategic merge patch: ${path === '' ? 'the object' : path} ${because}`,
  )
