// Applies a strategic merge patch: a merge patch in which some lists are merged item by item, by a key of the items. The
// caller provides the rules as a MergeShape. Pure: the document and the patch are not modified. strategic-order.ts sorts
// merged lists.
import { isRecord } from '../decode.ts'
import { getOwnProperty, isJsonArray, type JsonObject, type JsonValue, setOwnProperty } from '../json-value.ts'
import { PatchError } from './patch-error.ts'
import { orderItems } from './strategic-order.ts'

/** The merge rules of an object. Unknown fields are merged as in a JSON merge patch. */
export interface MergeShape {
  findField(name: string): MergeField | undefined
}

export interface MergeField {
  /** Merge key of a list, or '' for a list of scalars. If absent, the list is replaced. */
  readonly merge?: string
  /** The merge rules of the object, or of each item of the list. */
  readonly shape?: MergeShape
}

// Directives, which are not part of the result:
//   $patch: replace | delete | merge    on an object: replace it, empty it, merge it (the default)
//                                       on an item of a merged list: delete all previous items, delete this item,
//                                       merge it
//   $retainKeys: [k, …]                 delete all keys that are not listed
//   $setElementOrder/<list>: [k, …]     the order of the listed items
//   $deleteFromPrimitiveList/<list>     scalars to delete
export function applyStrategicMerge(document: JsonObject, patch: JsonValue, shape: MergeShape): JsonObject {
  if (!isRecord(patch)) throw new PatchError('malformed', 'a strategic merge patch must be an object')
  return mergeObject(document, patch, { shape, path: '' })
}

/** The rules of the value being merged, and its path for messages. */
interface MergeContext {
  readonly shape?: MergeShape
  readonly path: string
}

function mergeObject(original: JsonObject, patch: JsonObject, context: MergeContext): JsonObject {
  const directive = parseDirective(patch, context)
  if (directive === 'delete') return {}
  const base = directive === 'replace' ? {} : retainKeys(original, patch, context)
  const mergedObject: { [key: string]: JsonValue } = { ...base }
  let hasListDirectives = false
  for (const [key, change] of Object.entries(patch)) {
    if (isDirective(key)) hasListDirectives ||= key !== '$patch' && key !== '$retainKeys'
    else if (change === null) delete mergedObject[key]
    else if (typeof change !== 'object') setOwnProperty(mergedObject, key, change)
    else setField(mergedObject, key, mergeField(getOwnProperty(base, key), change, patch, fieldContext(context, key)))
  }
  if (!hasListDirectives) return mergedObject
  for (const [key, change] of Object.entries(patch)) {
    const listName = parseListName(key, ORDER_PREFIX, context)
    if (listName !== undefined) orderField(mergedObject, listName, change, { base, context })
  }
  for (const [key, change] of Object.entries(patch)) {
    const listName = parseListName(key, DELETE_PREFIX, context)
    if (listName !== undefined) deleteScalars(mergedObject, listName, change, context)
  }
  return mergedObject
}

function setField(mergedObject: { [key: string]: JsonValue }, key: string, value: JsonValue | undefined): void {
  if (value === undefined) delete mergedObject[key]
  else setOwnProperty(mergedObject, key, value)
}

type FieldContext = MergeField & { readonly key: string; readonly path: string }

/** Returns the new value of the field, or undefined if the patch deletes it. */
function mergeField(
  original: JsonValue | undefined,
  change: JsonObject | readonly JsonValue[],
  patch: JsonObject,
  context: FieldContext,
): JsonValue | undefined {
  if (isRecord(change)) {
    if (!isRecord(original) && parseDirective(change, context) === 'delete') return undefined
    return mergeObject(isRecord(original) ? original : {}, change, context)
  }
  checkOrder(change, getOwnProperty(patch, `${ORDER_PREFIX}/${context.key}`), context)
  const items = isJsonArray(original) ? original : []
  if (context.merge === undefined) return withoutDirectives(change, context)
  return context.merge === '' ? mergeScalars(items, change, context) : mergeItems(items, change, context)
}

// Lists

function mergeScalars(
  original: readonly JsonValue[],
  change: readonly JsonValue[],
  context: FieldContext,
): JsonValue[] {
  for (const item of change) {
    if (typeof item === 'object' && item !== null)
      throw createInapplicableError(context, 'is a list of scalars, but the patch contains an object or a list')
  }
  const items = [...new Set([...original, ...change])]
  return orderItems({ items, patchKeys: change, previousKeys: original, keyOf: (item) => item })
}

function mergeItems(original: readonly JsonValue[], change: readonly JsonValue[], context: FieldContext): JsonValue[] {
  const mergeKey = context.merge!
  const keyOf = (item: JsonValue) => mergeKeyOf(item, mergeKey, context)
  const directives = change.map((item) => (isRecord(item) ? parseDirective(item, context) : undefined))
  const deletedKeys = new Set(change.filter((_, i) => directives[i] === 'delete').map(keyOf))
  const changes = change.filter((_, i) => directives[i] !== 'delete' && directives[i] !== 'replace') as JsonObject[]

  const remainingItems = directives.includes('replace') ? [] : original.filter((item) => !deletedKeys.has(keyOf(item)))
  const items = [...remainingItems] as JsonObject[]
  const positions = new Map<unknown, number>()
  for (const [i, item] of items.entries()) if (!positions.has(keyOf(item))) positions.set(keyOf(item), i)
  for (const patchItem of changes) {
    const key = keyOf(patchItem)
    const position = positions.get(key) ?? items.length
    positions.set(key, position)
    const itemContext = { shape: context.shape, path: `${context.path}[${mergeKey}=${JSON.stringify(key)}]` }
    items[position] = mergeObject(items[position] ?? {}, patchItem, itemContext)
  }
  return orderItems({ items, patchKeys: changes.map(keyOf), previousKeys: original.map(keyOf), keyOf })
}

function mergeKeyOf(item: JsonValue, mergeKey: string, { path }: MergeContext): JsonValue {
  if (!isRecord(item)) throw createInapplicableError({ path }, 'is merged by key, so its items must be objects')
  const key = getOwnProperty(item, mergeKey)
  if (key === undefined || key === null)
    throw createInapplicableError({ path }, `has an item without its merge key "${mergeKey}"`)
  if (typeof key === 'object')
    throw createInapplicableError({ path }, `has an item whose merge key "${mergeKey}" is not a scalar`)
  return key
}

// $setElementOrder

function orderField(
  mergedObject: { [key: string]: JsonValue },
  key: string,
  order: JsonValue,
  { base, context }: { base: JsonObject; context: MergeContext },
): void {
  const field = fieldContext(context, key)
  if (!isJsonArray(order)) throw createInapplicableError(field, `has a ${ORDER_PREFIX} that is not a list`)
  const items = getOwnProperty(mergedObject, key)
  if (!isJsonArray(items) || field.merge === undefined) return // a replaced list already has the order of the patch
  const keyOf = (item: JsonValue) => (field.merge === '' ? item : mergeKeyOf(item, field.merge!, field))
  const original = getOwnProperty(base, key)
  const originalKeys = isJsonArray(original) ? original.map(keyOf) : []
  setOwnProperty(
    mergedObject,
    key,
    orderItems({ items, patchKeys: order.map(keyOf), previousKeys: originalKeys, keyOf }),
  )
}

/** Rejects a patch whose $setElementOrder does not list its items in the same order. */
function checkOrder(change: readonly JsonValue[], order: JsonValue | undefined, context: FieldContext): void {
  if (context.merge === undefined || !isJsonArray(order) || order.length === 0) return
  const keyOf = (item: JsonValue) => (context.merge === '' ? item : mergeKeyOf(item, context.merge!, context))
  const orderedKeys = order.map(keyOf).values()
  for (const item of change) {
    if (isRecord(item) && Object.hasOwn(item, '$patch')) continue
    const key = keyOf(item)
    let entry = orderedKeys.next()
    while (!entry.done && entry.value !== key) entry = orderedKeys.next()
    if (entry.done) {
      throw createInapplicableError(
        context,
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

function parseDirective(patch: JsonObject, context: MergeContext): 'replace' | 'delete' | 'merge' {
  const directive = getOwnProperty(patch, '$patch') ?? 'merge'
  if (directive === 'replace' || directive === 'delete' || directive === 'merge') return directive
  throw createInapplicableError(
    context,
    `has the unknown directive $patch: ${JSON.stringify(directive)}; expected replace, delete or merge`,
  )
}

function retainKeys(original: JsonObject, patch: JsonObject, context: MergeContext): JsonObject {
  const keys = getOwnProperty(patch, '$retainKeys')
  if (keys === undefined) return original
  if (!isJsonArray(keys)) throw createInapplicableError(context, 'has a $retainKeys that is not a list')
  const retainedKeys = new Set<unknown>(keys)
  for (const [key, change] of Object.entries(patch)) {
    if (change === null || isDirective(key) || retainedKeys.has(key)) continue
    throw createInapplicableError(context, `contains "${key}", which is not listed in its $retainKeys`)
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => retainedKeys.has(key)))
}

function parseListName(key: string, prefix: string, context: MergeContext): string | undefined {
  if (!key.startsWith(prefix)) return undefined
  if (key[prefix.length] !== '/')
    throw createInapplicableError(context, `has "${key}", which must have the form ${prefix}/<list>`)
  return key.slice(prefix.length + 1)
}

function deleteScalars(
  mergedObject: { [key: string]: JsonValue },
  key: string,
  change: JsonValue,
  context: MergeContext,
): void {
  if (!isJsonArray(change))
    throw createInapplicableError(fieldContext(context, key), `has a ${DELETE_PREFIX} that is not a list`)
  const items = getOwnProperty(mergedObject, key)
  if (!isJsonArray(items)) return
  const deletedItems = new Set(change)
  setOwnProperty(
    mergedObject,
    key,
    items.filter((item) => !deletedItems.has(item)),
  )
}

/** Returns the list of the patch without directives and without nulls in objects. */
function withoutDirectives(list: readonly JsonValue[], context: MergeContext): JsonValue[] {
  return list.flatMap((item) => {
    if (isJsonArray(item)) return [withoutDirectives(item, context)]
    if (!isRecord(item)) return [item]
    if (Object.hasOwn(item, '$patch') && parseDirective(item, context) !== 'merge') return []
    return [mergeObject({}, item, { path: context.path })]
  })
}

const fieldContext = ({ shape, path }: MergeContext, key: string): FieldContext => ({
  ...shape?.findField(key),
  key,
  path: path === '' ? key : `${path}.${key}`,
})

const createInapplicableError = ({ path }: { path: string }, reason: string): PatchError =>
  new PatchError(
    'inapplicable',
    `cannot apply the strategic merge patch: ${path === '' ? 'the object' : path} ${reason}`,
  )
