// Decodes objects that an API server returned, in place and leniently. A stock API server writes an empty list or map as
// null, as [] or {}, or omits it: `"drivers": null` in a CSINode without drivers. Decoding gives lists, maps and nulls the
// form that decode.ts gives them:
//
//   req  null or absent → the zero value               spec.drivers: null → []
//   opt  null, an empty list or an empty map → absent  metadata.labels: {} → absent
//   ptr  null → absent                                 nodeTopology: null → absent
//
// Unlike decode.ts, it keeps unknown fields and unexpected values, because the server may be newer, and it validates nothing.
import { deepFreeze } from '../base/freeze.ts'
import { isRecord, zeroOf } from './decode.ts'
import type { Field, ObjectType, Type } from './schema.ts'

/** Decodes and freezes `value`, which JSON.parse returned and which nothing else refers to. */
export function decodeResponse<T>(type: ObjectType<T>, value: Record<string, unknown>): T {
  readObject(shapeOf(type), value)
  return value as T
}

/** The properties of a type that decoding needs, computed once per type. */
interface ObjectShape {
  readonly fields: ReadonlyMap<string, FieldShape>
  readonly requiredFields: readonly RequiredField[]
}
interface FieldShape {
  readonly value: ValueShape
  readonly dropsEmpty: boolean
}
interface RequiredField {
  readonly name: string
  /** Frozen, because objects share it. */
  readonly zero: unknown
}
interface ValueShape {
  readonly is: 'scalar' | 'object' | 'list' | 'map' | 'json'
  readonly object?: ObjectShape
  /** The shape of the items of a list or the values of a map. */
  readonly item?: ValueShape
  /** Replaces items that are null, such as an empty value in the data of a Secret. */
  readonly itemZero?: unknown
}

const shapesByType = new WeakMap<ObjectType, ObjectShape>()

function shapeOf(type: ObjectType): ObjectShape {
  const cachedShape = shapesByType.get(type)
  if (cachedShape) return cachedShape
  const fields = new Map<string, FieldShape>()
  const requiredFields: RequiredField[] = []
  const shape = { fields, requiredFields }
  shapesByType.set(type, shape) // before its fields, because a type can contain itself
  for (const [name, field] of Object.entries(type.fields)) {
    fields.set(name, fieldShape(field))
    const zero = field.required ? deepFreeze(zeroOf(field.type)) : undefined
    if (zero !== undefined) requiredFields.push({ name, zero })
  }
  return shape
}

const fieldShape = ({ type, keepsEmpty }: Field): FieldShape => ({
  value: valueShape(type),
  dropsEmpty: !keepsEmpty && (type.is === 'list' || type.is === 'map'),
})

const SCALAR: ValueShape = { is: 'scalar' }

function valueShape(type: Type): ValueShape {
  switch (type.is) {
    case 'object':
      return { is: 'object', object: shapeOf(type) }
    case 'list':
      return { is: 'list', item: valueShape(type.item), itemZero: deepFreeze(zeroOf(type.item)) }
    case 'map':
      return { is: 'map', item: valueShape(type.value), itemZero: deepFreeze(zeroOf(type.value)) }
    case 'json':
      return { is: 'json' }
    default:
      return SCALAR
  }
}

function readObject({ fields, requiredFields }: ObjectShape, object: Record<string, unknown>): void {
  for (const name of Object.keys(object)) {
    const value = object[name]
    const field = fields.get(name)
    if (field === undefined) deepFreeze(value)
    else if (value === null || (field.dropsEmpty && isEmptyCollection(value))) delete object[name]
    else if (typeof value === 'object') readValue(field.value, value as object)
  }
  for (const { name, zero } of requiredFields) if (object[name] === undefined) object[name] = zero
  Object.freeze(object)
}

function readValue({ is, object, item, itemZero }: ValueShape, value: object): void {
  if (is === 'object' && isRecord(value)) readObject(object!, value)
  else if (is === 'list' && Array.isArray(value)) readItems(value, item!, itemZero)
  else if (is === 'map' && isRecord(value)) readEntries(value, item!, itemZero)
  else deepFreeze(value)
}

function readItems(items: unknown[], shape: ValueShape, zero: unknown): void {
  for (let i = 0; i < items.length; i++) {
    const item = items[i]
    if (item === null) items[i] = zero
    else if (typeof item === 'object') readValue(shape, item as object)
  }
  Object.freeze(items)
}

function readEntries(entries: Record<string, unknown>, shape: ValueShape, zero: unknown): void {
  for (const name of Object.keys(entries)) {
    const entry = entries[name]
    if (entry === null) entries[name] = zero
    else if (typeof entry === 'object') readValue(shape, entry as object)
  }
  Object.freeze(entries)
}

function isEmptyCollection(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (!isRecord(value)) return false
  for (const _ in value) return false
  return true
}
