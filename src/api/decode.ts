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
  #values = 0
  #valuesMax = VALUES_MAX
  readonly #largerValuesMax: (() => number) | undefined

  /** Throws if the object has too many values. */
  addValues(values: number): void {
    this.#values += values
    if (this.#values <= this.#valuesMax) return
    this.#valuesMax = Math.max(VALUES_MAX, this.#largerValuesMax?.() ?? 0)
    if (this.#values > this.#valuesMax) throw tooManyValues(this.#valuesMax)
  }

  readonly unknownFields: string[] = []
  readonly isPartial: boolean
  constructor(isPartial: boolean, largerValuesMax: (() => number) | undefined) {
    this.isPartial = isPartial
    this.#largerValuesMax = largerValuesMax
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
  const object = decodeObject(type, value, '', context, { previousValue: previous, ignoredKeys })
  return { object: object as T, unknownFields: context.unknownFields, keyCount: context.keyCount }
}

function decodeValue(
  type: Type,
  value: unknown,
  path: string,
  context: DecodeContext,
  previousValue?: unknown,
): unknown {
  if (previousValue !== undefined && value === previousValue) return value
  switch (type.is) {
    case 'object':
      return decodeObject(type, value, path, context, previousValue === undefined ? NO_PREVIOUS : { previousValue })
    case 'list':
      return decodeList(type.item, value, path, context)
    case 'map':
      return decodeMap(type, value, path, context)
    case 'json':
      context.keyCount += countOwnKeys(value)
      return value
    default:
      return decodeScalar(type.is, value, path)
  }
}

const NO_PREVIOUS = {}

function decodeObject(
  type: ObjectType,
  value: unknown,
  path: string,
  context: DecodeContext,
  {
    previousValue,
    ignoredKeys = [],
  }: { readonly previousValue?: unknown; readonly ignoredKeys?: readonly string[] } = NO_PREVIOUS,
): Record<string, unknown> {
  if (!isRecord(value)) throw mismatch(path, 'an object', value)
  const previousFields = isRecord(previousValue) ? previousValue : undefined
  // Fields are in the order of the declaration and not of the client, so that equal objects have equal bytes.
  const object: Record<string, unknown> = {}
  let declaredCount = 0
  for (const [name, field] of fieldsOf(type)) {
    const raw = value[name]
    if (raw !== undefined && Object.hasOwn(value, name)) {
      declaredCount++
      if (raw !== null) {
        const decodedValue = decodeValue(field.type, raw, childPath(path, name), context, previousFields?.[name])
        if (
          decodedValue !== undefined &&
          (field.keepsEmpty || context.isPartial || !isEmpty(field.type, decodedValue))
        ) {
          object[name] = decodedValue
          continue
        }
      }
    }
    if (field.required && !context.isPartial) {
      const zero = zeroOf(field.type)
      if (zero !== undefined) object[name] = zero
    }
  }
  const names = Object.keys(value)
  context.addValues(names.length)
  context.keyCount += names.length
  if (names.length > declaredCount) recordUnknownFields(type, value, names, path, context, ignoredKeys)
  return object
}

function recordUnknownFields(
  type: ObjectType,
  value: Record<string, unknown>,
  names: readonly string[],
  path: string,
  context: DecodeContext,
  ignoredKeys: readonly string[],
): void {
  for (const name of names) {
    if (Object.hasOwn(type.fields, name) || ignoredKeys.includes(name)) continue
    context.keyCount += countOwnKeys(value[name])
    if (context.unknownFields.length < UNKNOWN_FIELDS_MAX) context.unknownFields.push(childPath(path, name))
  }
}

function decodeList(item: Type, value: unknown, path: string, context: DecodeContext): unknown[] {
  if (!Array.isArray(value)) throw mismatch(path, 'a list', value)
  context.addValues(value.length)
  const items: unknown[] = []
  for (let index = 0; index < value.length; index++) {
    const element = value[index]
    items.push(element === null ? zeroOf(item) : decodeValue(item, element, `${path}[${index}]`, context))
  }
  return items
}

function decodeMap(type: MapType, value: unknown, path: string, context: DecodeContext): Record<string, unknown> {
  if (!isRecord(value)) throw mismatch(path, 'an object', value)
  const object: Record<string, unknown> = {}
  const names = Object.keys(value).sort()
  context.addValues(names.length)
  for (const name of names) {
    context.keyCount++
    const raw = value[name]
    const decodedValue = raw === null ? zeroOf(type.value) : decodeValue(type.value, raw, `${path}[${name}]`, context)
    setOwnProperty(object, name, decodedValue)
  }
  return object
}

function decodeScalar(type: Scalar, value: unknown, path: string): unknown {
  switch (type) {
    case 'string':
      if (typeof value !== 'string') throw mismatch(path, 'a string', value)
      return value
    case 'boolean':
      if (typeof value !== 'boolean') throw mismatch(path, 'true or false', value)
      return value
    case 'int32':
      return decodeInteger(value, path, -(2 ** 31), 2 ** 31 - 1)
    case 'int64':
      return decodeInteger(value, path, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    case 'double':
      if (typeof value !== 'number') throw mismatch(path, 'a number', value)
      return value
    case 'intOrString':
      return typeof value === 'string' ? value : decodeInteger(value, path, -(2 ** 31), 2 ** 31 - 1)
    case 'quantity':
      return decodeQuantity(value, path)
    case 'time':
      return decodeTime(value, path, 0)
    case 'microTime':
      return decodeTime(value, path, 6)
    case 'bytes':
      return decodeBytes(value, path)
  }
}

function decodeInteger(value: unknown, path: string, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) throw mismatch(path, 'a whole number', value)
  if (value < min || value > max) throw new DecodeError(`${path}: ${value} is outside ${min} to ${max}`)
  return value + 0 === 0 ? 0 : value // -0 becomes 0
}

function decodeQuantity(value: unknown, path: string): string {
  if (typeof value !== 'string' && typeof value !== 'number') throw mismatch(path, 'a quantity such as "10Gi"', value)
  try {
    return canonicalQuantity(String(value))
  } catch {
    throw new DecodeError(
      `${path}: ${quote(value)} is not a quantity: quantities must match the regular expression ` +
        `'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
    )
  }
}

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/i

/** Recent canonical times. Objects that are created together have the same timestamps. */
const canonicalTimes = new LruCache<string, string>(200)

function decodeTime(value: unknown, path: string, fractionDigits: 0 | 6): string | undefined {
  if (value === '') return undefined
  if (typeof value !== 'string') throw mismatch(path, 'a time such as "2026-01-31T12:00:00Z"', value)
  if (fractionDigits === 6) return canonicalTime(value, path, fractionDigits)
  const cachedTime = canonicalTimes.get(value)
  if (cachedTime !== undefined) return cachedTime
  const canonical = canonicalTime(value, path, fractionDigits)
  if (canonical === value) canonicalTimes.set(value, canonical)
  return canonical
}

function canonicalTime(value: string, path: string, fractionDigits: 0 | 6): string {
  const match = RFC3339.exec(value)
  const timeMs = match ? Date.parse(value.replace(/\.\d+/, '')) : Number.NaN
  if (!match || Number.isNaN(timeMs) || !hasRealDate(match)) {
    throw new DecodeError(`${path}: ${quote(value)} is not a time such as "2026-01-31T12:00:00Z"`)
  }
  const isoTime = new Date(timeMs).toISOString()
  // A UTC offset can move the first or last day out of the range of four-digit years.
  if (isoTime.length !== 24) throw new DecodeError(`${path}: ${quote(value)} is outside the years 0 to 9999`)
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

function decodeBytes(value: unknown, path: string): string {
  if (typeof value !== 'string') throw mismatch(path, 'base64 text', value)
  const text = /[\r\n]/.test(value) ? value.replace(/[\r\n]/g, '') : value
  if (!BASE64.test(text)) throw new DecodeError(`${path}: illegal base64 data`)
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

function mismatch(path: string, expected: string, actual: unknown): DecodeError {
  return new DecodeError(`${path || 'body'}: expected ${expected}, got ${describeValue(actual)}`)
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
