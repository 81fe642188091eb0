// The types of JSON values and operations on them.

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject
export type JsonObject = { readonly [key: string]: JsonValue }

/** Returns the value of an own property. Inherited properties, such as "constructor", are ignored. */
export const getOwnProperty = (object: JsonObject, key: string): JsonValue | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined

/** Sets an own property. Unlike `object[key] = value`, it does not change the prototype if the key is "__proto__". */
export function setOwnProperty<T>(object: { [key: string]: T }, key: string, value: T): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
  } else {
    object[key] = value
  }
}

/** Compares two values by content. The order of keys is ignored; the order of items is not. */
export function jsonEquals(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (isJsonArray(a) || isJsonArray(b)) {
    if (!isJsonArray(a) || !isJsonArray(b) || a.length !== b.length) return false
    for (let index = 0; index < a.length; index++) if (!jsonEquals(a[index], b[index])) return false
    return true
  }
  // Unlike Object.keys and every(), the loops allocate nothing. Plain data inherits no enumerable fields.
  let keysOnlyInB = 0
  for (const _ in b) keysOnlyInB++
  for (const key in a) {
    if (!Object.hasOwn(b, key) || !jsonEquals(a[key], b[key])) return false
    keysOnlyInB--
  }
  return keysOnlyInB === 0
}

export const isJsonArray = (value: unknown): value is readonly JsonValue[] => Array.isArray(value)

/** Returns whether objects and arrays are nested more than `depthMax` levels deep. */
export function exceedsDepth(value: JsonValue, depthMax: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (depthMax === 0) return true
  for (const inner of isJsonArray(value) ? value : Object.values(value))
    if (exceedsDepth(inner, depthMax - 1)) return true
  return false
}
