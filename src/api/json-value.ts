// The types of JSON values, and operations on them that plain syntax gets wrong: setting a key that may be "__proto__",
// reading only own keys, and comparing by content.

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject
export type JsonObject = { readonly [key: string]: JsonValue }

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value of an own key; inherited ones, such as "constructor", are ignored. */
export const ownValue = (object: JsonObject, key: string): JsonValue | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined

/** Sets an own property of any name. `object['__proto__'] = value` would change the prototype instead. */
export function setOwn<T>(object: { [key: string]: T }, key: string, value: T): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
  } else {
    object[key] = value
  }
}

/** Compares by content: keys in any order, items in the same order, numbers by value. */
export function jsonEquals(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (isList(a) || isList(b)) {
    if (!isList(a) || !isList(b) || a.length !== b.length) return false
    return a.every((item, i) => jsonEquals(item, b[i]))
  }
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && jsonEquals(a[key], b[key]))
  )
}

export const isList = (value: unknown): value is readonly JsonValue[] => Array.isArray(value)

/** Whether objects and lists are nested more than `depthMax` deep. */
export function isDeeperThan(value: JsonValue, depthMax: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (depthMax === 0) return true
  for (const inner of isList(value) ? value : Object.values(value)) if (isDeeperThan(inner, depthMax - 1)) return true
  return false
}
