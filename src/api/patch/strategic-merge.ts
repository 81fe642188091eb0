// Strategic merge patch: a merge patch that knows which lists are merged item by item, and by which key.
// The rules come from a MergeShape, so that this file needs to know nothing about how kinds are declared.
// Pure: document and patch are left as they were. The order of merged lists is strategic-order.ts.
import { isJsonObject, isList, type JsonObject, type JsonValue, ownValue, setOwn } from '../json-value.ts'
import { PatchError } from './patch-error.ts'
import { orderItems } from './strategic-order.ts'

/** How the fields of an object are merged. Fields it does not know merge as plain JSON: maps merge, lists replace. */
export interface MergeShape {
  field(name: string): MergeField | undefined
}

export interface MergeField {
  /** For a list that is merged: the key of its items, or '' for scalars. Without it a list is replaced. */
  readonly merge?: string
  /** How the object, or each item of the list, is merged. */
  readonly shape?: MergeShape
}

// Directives, which never reach the result:
//   $patch: replace | delete | merge    on an object: take the patch's, take nothing, merge (as without it)
//                                       on an item of a merged list: drop all others, drop this one, merge
//   $retainKeys: [k, …]                 drop every key that is not named
//   $setElementOrder/<list>: [k, …]     the order of the items named
//   $deleteFromPrimitiveList/<list>     scalars to take out
export function strategicMerge(document: JsonObject, patch: JsonValue, shape: MergeShape): JsonObject {
  if (!isJsonObject(patch)) throw new PatchError('malformed', 'a strategic merge patch must be an object')
  return mergeObject(document, patch, { shape, path: '' })
}

/** The place being merged: its rules, and its path for messages. */
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
    else setField(merged, key, mergeField(ownValue(base, key), change, patch, inside(place, key)))
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
  else setOwn(merged, key, value)
}

type FieldPlace = MergeField & { readonly key: string; readonly path: string }

/** The field's new value, or undefined if the patch takes it away. */
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
  if (!isList(change)) return change
  checkOrder(change, ownValue(patch, `${ORDER_PREFIX}/${place.key}`), place)
  const before = isList(original) ? original : []
  if (place.merge === undefined) return withoutDirectives(change, place)
  return place.merge === '' ? mergeScalars(before, change, place) : mergeItems(before, change, place)
}

// Lists

function mergeScalars(before: readonly JsonValue[], change: readonly JsonValue[], place: FieldPlace): JsonValue[] {
  for (const item of change) {
    if (typeof item === 'object' && item !== null)
      throw refusal(place, 'holds scalars, and the patch has something else')
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
  if (!isJsonObject(item)) throw refusal({ path }, 'is merged by key, so its items must be objects')
  const key = ownValue(item, mergeKey)
  if (key === undefined || key === null) throw refusal({ path }, `has an item without its merge key "${mergeKey}"`)
  if (typeof key === 'object') throw refusal({ path }, `has an item whose merge key "${mergeKey}" is not a scalar`)
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
  if (!isList(order)) throw refusal(field, `has a ${ORDER_PREFIX} that is not a list`)
  const items = ownValue(merged, key)
  if (!isList(items) || field.merge === undefined) return // replaced as a whole, so it has the patch's order already
  const keyOf = (item: JsonValue) => (field.merge === '' ? item : keyOfItem(item, field.merge!, field))
  const before = ownValue(base, key)
  const keysBefore = isList(before) ? before.map(keyOf) : []
  setOwn(merged, key, orderItems({ items, wanted: order.map(keyOf), before: keysBefore, keyOf }))
}

/** Every item that a patch changes must be named in the order it gives, in that order. */
function checkOrder(change: readonly JsonValue[], order: JsonValue | undefined, place: FieldPlace): void {
  if (place.merge === undefined || !isList(order) || order.length === 0) return
  const keyOf = (item: JsonValue) => (place.merge === '' ? item : keyOfItem(item, place.merge!, place))
  const ordered = order.map(keyOf).values()
  for (const item of change) {
    if (isJsonObject(item) && Object.hasOwn(item, '$patch')) continue
    const key = keyOf(item)
    let next = ordered.next()
    while (!next.done && next.value !== key) next = ordered.next()
    if (next.done) {
      throw refusal(place, `has ${JSON.stringify(key)} in the patch, but not, or not there, in its ${ORDER_PREFIX}`)
    }
  }
}

// The other directives

const ORDER_PREFIX = '$setElementOrder'
const DELETE_PREFIX = '$deleteFromPrimitiveList'

const isDirective = (key: string): boolean =>
  key === '$patch' || key === '$retainKeys' || key.startsWith(ORDER_PREFIX) || key.startsWith(DELETE_PREFIX)

function directiveOf(patch: JsonObject, place: Place): 'replace' | 'delete' | 'merge' {
  const directive = ownValue(patch, '$patch') ?? 'merge'
  if (directive === 'replace' || directive === 'delete' || directive === 'merge') return directive
  throw refusal(
    place,
    `has the unknown directive $patch: ${JSON.stringify(directive)}; known are replace, delete, merge`,
  )
}

function retainKeys(original: JsonObject, patch: JsonObject, place: Place): JsonObject {
  const keys = ownValue(patch, '$retainKeys')
  if (keys === undefined) return original
  if (!isList(keys)) throw refusal(place, 'has a $retainKeys that is not a list')
  const retained = new Set<unknown>(keys)
  for (const [key, change] of Object.entries(patch)) {
    if (change === null || isDirective(key) || retained.has(key)) continue
    throw refusal(place, `is given "${key}", which its $retainKeys does not name`)
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => retained.has(key)))
}

function listNamedBy(key: string, prefix: string, place: Place): string | undefined {
  if (!key.startsWith(prefix)) return undefined
  if (key[prefix.length] !== '/') throw refusal(place, `has "${key}", which must name a list: ${prefix}/<list>`)
  return key.slice(prefix.length + 1)
}

function deleteScalars(merged: { [key: string]: JsonValue }, key: string, change: JsonValue, place: Place): void {
  if (!isList(change)) throw refusal(inside(place, key), `has a ${DELETE_PREFIX} that is not a list`)
  const items = ownValue(merged, key)
  if (isList(items))
    setOwn(
      merged,
      key,
      items.filter((item) => !change.includes(item)),
    )
}

/** A list that is taken as it is, except for what only has a meaning in patches: directives, and nulls in objects. */
function withoutDirectives(list: readonly JsonValue[], place: Place): JsonValue[] {
  return list.flatMap((item) => {
    if (isList(item)) return [withoutDirectives(item, place)]
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

const refusal = ({ path }: { path: string }, because: string): PatchError =>
  new PatchError(
    'inapplicable',
    `cannot apply the strategic merge patch: ${path === '' ? 'the object' : path} ${because}`,
  )
