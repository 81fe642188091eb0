// Returns the value of a key in a map. Creates and stores the value if the key is absent.

export function getOrCreate<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  create: () => V,
): V {
  const existingValue = map.get(key)
  if (existingValue !== undefined) return existingValue
  const newValue = create()
  map.set(key, newValue)
  return newValue
}
