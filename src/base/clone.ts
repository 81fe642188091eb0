// Copies plain JSON data deeply, faster than structuredClone. `__proto__` is an ordinary key.
export function clone<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(clone) as T
  const copy: Record<string, unknown> = {}
  // Unlike Object.keys, the loop allocates nothing. Plain data inherits no enumerable fields.
  for (const name in value) {
    const valueCopy = clone((value as Record<string, unknown>)[name])
    if (name === '__proto__') {
      Object.defineProperty(copy, name, { value: valueCopy, enumerable: true, configurable: true, writable: true })
    } else copy[name] = valueCopy
  }
  return copy as T
}
