// Decodes parsed JSON into an object of a declared type. Rejects values of the wrong type, drops and reports unknown
// fields, and converts times, quantities and base64 to canonical form. Drops fields that are null and, unless the field or
// `isPartial` keeps them, empty optional values; replaces list items and map values that are null with the zero value. The
// rules in kinds/ validate the values.
import { LruCache } from '../base/lru-cache.ts'
import { setOwnProperty } from './json-value.ts'
import { canonicalQuantity } from './quantity.ts'
import type { Field, MapType, ObjectType, Scalar, Type } from './schema.ts'

export interface Decoded<T> {
  readonly object: T
  /** Paths of fields that the type does not have; at most UNKNOWN_FIELDS_MAX. */
  readonly unknownFields: readonly string[]
  /**
   * Number of keys in the input, without those in reused parts of a previous object. If no part is reused and parse-json.ts
   * counts more in the text, the text has duplicate keys.
   */
  readonly keyCount: number
}

/** The error for a value that cannot be decoded. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError'
}

const UNKNOWN_FIELDS_MAX = 50 // bounds the response to a hostile body; further fields are dropped without a report

/** Bounds the time for which one body can block the event loop. Larger objects are rejected, unless `valuesMax` allows them. */
export const VALUES_MAX = 10_000

class DecodeContext {
  keyCount = 0
  readonly unknownFields: string[] = []
  readonly isPartial: boolean
  /** The fields, list indexes and `[key]` of maps that lead to the value being decoded. They become text only in messages. */
  readonly path: (string | number)[] = []
  /** The present fields of the object being decoded, above those of the objects around it. */
  readonly presentFields: FieldPlan[] = []
  #values = 0
  #valuesMax = VALUES_MAX
  readonly #largerValuesMax: (() => number) | undefined

  constructor(isPartial: boolean, largerValuesMax: (() => number) | undefined) {
    this.isPartial = isPartial
    this.#largerValuesMax = largerValuesMax
  }

  /** Throws if the object has too many values. */
  addValues(values: number): void {
    this.#values += values
    if (this.#values <= this.#valuesMax) return
    this.#valuesMax = Math.max(VALUES_MAX, this.#largerValuesMax?.() ?? 0)
    if (this.#values > this.#valuesMax) throw tooManyValues(this.#valuesMax)
  }

  pathText(): string {
    let text = ''
    for (const segment of this.path) {
      if (typeof segment === 'number') text += `[${segment}]`
      else text += segment.startsWith('[') ? segment : text === '' ? segment : `.${segment}`
    }
    return text
  }
}

export interface DecodeOptions {
  /** Decodes a partial object, as in an apply: adds no zero values and keeps empty values, because they are intended. */
  readonly isPartial?: boolean
  /** An object decoded earlier. A field of `value`, or of an object in it, is reused if it is identical (===) at the same path. */
  readonly previous?: object
  /** Returns a maximum number of values that may be larger than VALUES_MAX. Called when an object has more than that. */
  readonly valuesMax?: () => number
}

/** Decodes `value`. Keys of the root in `ignoredKeys` (apiVersion and kind) are neither decoded nor reported as unknown. */
export function decode<T>(
  type: ObjectType<T>,
  value: unknown,
  ignoredKeys: readonly string[] = [],
  { isPartial = false, previous, valuesMax }: DecodeOptions = {},
): Decoded<T> {
  const context = new DecodeContext(isPartial, valuesMax)
  const object = decodeObject(type, value, context, previous, ignoredKeys)
  return { object: object as T, unknownFields: context.unknownFields, keyCount: context.keyCount }
}

function decodeValue(type: Type, value: unknown, context: DecodeContext, previousValue?: unknown): unknown {
  if (previousValue !== undefined && value === previousValue) return value
  switch (type.is) {
    case 'string':
    case 'boolean':
      return typeof value === type.is ? value : decodeScalar(type.is, value, context)
    case 'object':
      return decodeObject(type, value, context, previousValue)
    case 'list':
      return decodeList(type.item, value, context)
    case 'map':
      return decodeMap(type, value, context)
    case 'json':
      context.keyCount += countOwnKeys(value)
      return value
    default:
      return decodeScalar(type.is, value, context)
  }
}

const NO_KEYS: readonly string[] = []

/**
 * Visits the fields that the object has, and not those that its type declares: most types have many more, and a search for an absent
 * field is not cheap in an object whose hidden class varies.
 */
function decodeObject(
  type: ObjectType,
  value: unknown,
  context: DecodeContext,
  previousValue: unknown,
  ignoredKeys = NO_KEYS,
): Record<string, unknown> {
  if (!isRecord(value)) throw mismatch(context, 'an object', value)
  const previousFields = isRecord(previousValue) ? previousValue : undefined
  const { fieldsByName, requiredFields } = planOf(type)
  const { presentFields, isPartial, path } = context
  const start = presentFields.length
  let keyCount = 0
  let isSorted = true
  for (const name in value) {
    keyCount++
    const field = fieldsByName.get(name)
    if (field === undefined) continue
    if (presentFields.length > start && field.index < presentFields.at(-1)!.index) isSorted = false
    presentFields.push(field)
  }
  const end = presentFields.length
  // Fields are in the order of the declaration and not of the client, so that equal objects have equal bytes.
  if (!isSorted) sortFrom(presentFields, start)

  const object: Record<string, unknown> = {}
  let requiredCount = 0
  for (let position = start; position < end; position++) {
    const field = presentFields[position]!
    const { index, name } = field
    if (!isPartial) requiredCount = addZeros(object, requiredFields, requiredCount, index)
    const raw = value[name]
    if (raw !== undefined && raw !== null) {
      path.push(name)
      const decodedValue = decodeValue(field.type, raw, context, previousFields?.[name])
      path.pop()
      if (decodedValue !== undefined && (field.keepsEmpty || isPartial || !isEmpty(field.type, decodedValue))) {
        object[name] = decodedValue
        if (requiredFields[requiredCount] === field) requiredCount++
      }
    }
  }
  if (!isPartial) addZeros(object, requiredFields, requiredCount, Number.POSITIVE_INFINITY)
  presentFields.length = start
  context.addValues(keyCount)
  context.keyCount += keyCount
  if (keyCount > end - start) recordUnknownFields(type, value, context, ignoredKeys)
  return object
}

/** Adds the zero values of the required fields before `index`, from the position `count` on. Returns the next position. */
function addZeros(
  object: Record<string, unknown>,
  requiredFields: readonly FieldPlan[],
  count: number,
  index: number,
): number {
  let position = count
  for (; position < requiredFields.length && requiredFields[position]!.index < index; position++) {
    const { name, type } = requiredFields[position]!
    const zero = zeroOf(type)
    if (zero !== undefined) object[name] = zero
  }
  return position
}

/** Sorts the fields from a position on by insertion: there are few, and most are sorted. */
function sortFrom(fields: FieldPlan[], start: number): void {
  for (let end = start + 1; end < fields.length; end++) {
    const field = fields[end]!
    let position = end
    for (; position > start && fields[position - 1]!.index > field.index; position--)
      fields[position] = fields[position - 1]!
    fields[position] = field
  }
}

/** What decoding needs of a declared field. */
interface FieldPlan {
  /** The position in the declaration. */
  readonly index: number
  readonly name: string
  readonly type: Type
  readonly keepsEmpty: boolean
}

interface ObjectPlan {
  readonly fieldsByName: ReadonlyMap<string, FieldPlan>
  /** In the order of the declaration. */
  readonly requiredFields: readonly FieldPlan[]
}

const plansByType = new WeakMap<ObjectType, ObjectPlan>()

function planOf(type: ObjectType): ObjectPlan {
  let plan = plansByType.get(type)
  if (!plan) {
    const fieldsByName = new Map<string, FieldPlan>()
    const requiredFields: FieldPlan[] = []
    for (const [index, [name, field]] of fieldsOf(type).entries()) {
      const fieldPlan: FieldPlan = { index, name, type: field.type, keepsEmpty: field.keepsEmpty }
      fieldsByName.set(name, fieldPlan)
      if (field.required) requiredFields.push(fieldPlan)
    }
    plan = { fieldsByName, requiredFields }
    plansByType.set(type, plan)
  }
  return plan
}

function recordUnknownFields(
  type: ObjectType,
  value: Record<string, unknown>,
  context: DecodeContext,
  ignoredKeys: readonly string[],
): void {
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(type.fields, name) || ignoredKeys.includes(name)) continue
    context.keyCount += countOwnKeys(value[name])
    if (context.unknownFields.length < UNKNOWN_FIELDS_MAX) {
      context.unknownFields.push(childPath(context.pathText(), name))
    }
  }
}

function decodeList(item: Type, value: unknown, context: DecodeContext): unknown[] {
  if (!Array.isArray(value)) throw mismatch(context, 'a list', value)
  context.addValues(value.length)
  const items: unknown[] = []
  for (let index = 0; index < value.length; index++) {
    const element = value[index]
    if (element === null) {
      items.push(zeroOf(item))
      continue
    }
    context.path.push(index)
    items.push(decodeValue(item, element, context))
    context.path.pop()
  }
  return items
}

function decodeMap(type: MapType, value: unknown, context: DecodeContext): Record<string, unknown> {
  if (!isRecord(value)) throw mismatch(context, 'an object', value)
  const object: Record<string, unknown> = {}
  const names = Object.keys(value)
  if (names.length > 1) names.sort()
  context.addValues(names.length)
  for (const name of names) {
    context.keyCount++
    const raw = value[name]
    let decodedValue = raw
    if (raw === null) decodedValue = zeroOf(type.value)
    else if (type.value.is !== 'string' || typeof raw !== 'string') {
      context.path.push(`[${name}]`)
      decodedValue = decodeValue(type.value, raw, context)
      context.path.pop()
    }
    setOwnProperty(object, name, decodedValue)
  }
  return object
}

function decodeScalar(type: Scalar, value: unknown, context: DecodeContext): unknown {
  switch (type) {
    case 'string':
      if (typeof value !== 'string') throw mismatch(context, 'a string', value)
      return value
    case 'boolean':
      if (typeof value !== 'boolean') throw mismatch(context, 'true or false', value)
      return value
    case 'int32':
      return decodeInteger(value, context, -(2 ** 31), 2 ** 31 - 1)
    case 'int64':
      return decodeInteger(value, context, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    case 'double':
      if (typeof value !== 'number') throw mismatch(context, 'a number', value)
      return value
    case 'intOrString':
      return typeof value === 'string' ? value : decodeInteger(value, context, -(2 ** 31), 2 ** 31 - 1)
    case 'quantity':
      return decodeQuantity(value, context)
    case 'time':
      return decodeTime(value, context, 0)
    case 'microTime':
      return decodeTime(value, context, 6)
    case 'bytes':
      return decodeBytes(value, context)
  }
}

function decodeInteger(value: unknown, context: DecodeContext, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) throw mismatch(context, 'a whole number', value)
  if (value < min || value > max) throw new DecodeError(`${context.pathText()}: ${value} is outside ${min} to ${max}`)
  return value + 0 === 0 ? 0 : value // -0 becomes 0
}

function decodeQuantity(value: unknown, context: DecodeContext): string {
  if (typeof value !== 'string' && typeof value !== 'number')
    throw mismatch(context, 'a quantity such as "10Gi"', value)
  try {
    return canonicalQuantity(String(value))
  } catch {
    throw new DecodeError(
      `${context.pathText()}: ${quote(value)} is not a quantity: quantities must match the regular expression ` +
        `'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
    )
  }
}

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/i

/** Recent canonical times. Objects that are created together have the same timestamps. */
const canonicalTimes = new LruCache<string, string>(200)

function decodeTime(value: unknown, context: DecodeContext, fractionDigits: 0 | 6): string | undefined {
  if (value === '') return undefined
  if (typeof value !== 'string') throw mismatch(context, 'a time such as "2026-01-31T12:00:00Z"', value)
  if (fractionDigits === 6) return canonicalTime(value, context, fractionDigits)
  const cachedTime = canonicalTimes.get(value)
  if (cachedTime !== undefined) return cachedTime
  const canonical = canonicalTime(value, context, fractionDigits)
  if (canonical === value) canonicalTimes.set(value, canonical)
  return canonical
}

function canonicalTime(value: string, context: DecodeContext, fractionDigits: 0 | 6): string {
  const match = RFC3339.exec(value)
  const timeMs = match ? Date.parse(value.replace(/\.\d+/, '')) : Number.NaN
  if (!match || Number.isNaN(timeMs) || !hasRealDate(match)) {
    throw new DecodeError(`${context.pathText()}: ${quote(value)} is not a time such as "2026-01-31T12:00:00Z"`)
  }
  const isoTime = new Date(timeMs).toISOString()
  // A UTC offset can move the first or last day out of the range of four-digit years.
  if (isoTime.length !== 24)
    throw new DecodeError(`${context.pathText()}: ${quote(value)} is outside the years 0 to 9999`)
  if (fractionDigits === 0) return `${isoTime.slice(0, 19)}Z`
  return `${isoTime.slice(0, 19)}.${(match[7] ?? '').padEnd(6, '0').slice(0, 6)}Z`
}

/** Returns false for dates such as February 30, which Date.parse converts to March 2, and for the hour 24. */
function hasRealDate(match: RegExpExecArray): boolean {
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])]
  const date = new Date(Date.UTC(2000, month - 1, day))
  date.setUTCFullYear(year, month - 1, day)
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day && Number(match[4]) < 24
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

function decodeBytes(value: unknown, context: DecodeContext): string {
  if (typeof value !== 'string') throw mismatch(context, 'base64 text', value)
  const text = /[\r\n]/.test(value) ? value.replace(/[\r\n]/g, '') : value
  if (!BASE64.test(text)) throw new DecodeError(`${context.pathText()}: illegal base64 data`)
  return text
}

/** Returns the zero value of a type, or undefined for times, which have none. */
export function zeroOf(type: Type): unknown {
  switch (type.is) {
    case 'object': {
      const object: Record<string, unknown> = {}
      for (const [name, field] of fieldsOf(type)) if (field.required) object[name] = zeroOf(field.type)
      return object
    }
    case 'list':
      return []
    case 'map':
      return {}
    case 'json':
      return null
    case 'boolean':
      return false
    case 'int32':
    case 'int64':
    case 'double':
    case 'intOrString':
      return 0
    case 'quantity':
      return '0'
    case 'time':
    case 'microTime':
      return undefined
    default:
      return ''
  }
}

const entriesByType = new WeakMap<ObjectType, readonly (readonly [string, Field])[]>()

/** Returns the fields of a type in the order of their declaration. */
export function fieldsOf(type: ObjectType): readonly (readonly [string, Field])[] {
  let entries = entriesByType.get(type)
  if (!entries) {
    entries = Object.entries(type.fields)
    entriesByType.set(type, entries)
  }
  return entries
}

function isEmpty(type: Type, value: unknown): boolean {
  if (value === '' || value === 0 || value === false) return true
  if (Array.isArray(value)) return value.length === 0
  return type.is === 'map' && Object.keys(value as object).length === 0
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns the number of fields and list items in a value, at all levels. */
export function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  for (const inner of Object.values(value)) count += 1 + countValues(inner)
  return count
}

const tooManyValues = (max: number) => new DecodeError(`the object has more than ${max} fields and list items`)

function countOwnKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + countOwnKeys(item), 0)
  let count = 0
  for (const name of Object.keys(value)) count += 1 + countOwnKeys((value as Record<string, unknown>)[name])
  return count
}

const childPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

function mismatch(context: DecodeContext, expected: string, actual: unknown): DecodeError {
  return new DecodeError(`${context.pathText() || 'body'}: expected ${expected}, got ${describeValue(actual)}`)
}

function describeValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'an object'
  return `${typeof value} ${quote(value)}`
}

function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
