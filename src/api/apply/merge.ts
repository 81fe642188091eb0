// Merges a configuration into an object: sets the fields of the configuration and keeps all others. Pure; unchanged parts
// are shared. A list owned item by item keeps the items that the configuration does not contain, and takes the order of
// the configuration for those that it does:
//   [a b c d] with [d x b]  →  [a c d x b]

import { setOwn } from '../json-value.ts'
import type { DeclaredValue } from '../schema.ts'
import { valueElement } from './path-element.ts'
import type { ItemsShape, ObjectShape, Shape } from './shape.ts'

type Value = Record<string, unknown>

export function mergeConfig(shape: ObjectShape, live: Value, config: Value): Value {
  return mergeAt(shape, live, config) as Value
}

function mergeAt(shape: Shape, live: DeclaredValue, config: DeclaredValue): unknown {
  if (live === undefined) return config
  switch (shape.is) {
    case 'leaf':
      return config
    case 'object': {
      const merged: Value = { ...live }
      for (const field of shape.fields) {
        const value = config[field.name]
        if (value !== undefined) merged[field.name] = mergeAt(field.shape(), live[field.name], value)
      }
      return merged
    }
    case 'map': {
      const merged: Value = { ...live }
      for (const key of Object.keys(config)) {
        const before = Object.hasOwn(live, key) ? live[key] : undefined
        setOwn(merged, key, mergeAt(shape.value, before, config[key]))
      }
      return merged
    }
    case 'set':
      return mergeItems(live, config, valueElement, (_, item) => item)
    case 'items':
      return mergeItems(live, config, shape.keyOf, (before, item) => mergeAt(shape.item, before, item))
  }
}

function mergeItems(
  live: readonly DeclaredValue[],
  config: readonly DeclaredValue[],
  keyOf: ItemsShape['keyOf'] | typeof valueElement,
  mergeItem: (before: unknown, item: unknown) => unknown,
): unknown[] {
  const key = keyOf as (item: unknown) => string
  const liveKeys = live.map(key)
  const configKeys = config.map(key)
  const named = new Set(configKeys)
  const positions = positionsOf(liveKeys)
  const merged: unknown[] = []
  let next = 0
  const passUpTo = (end: number) => {
    for (; next < end; next++) if (!named.has(liveKeys[next]!)) merged.push(live[next])
  }
  for (const [index, item] of config.entries()) {
    const shared = configKeys.slice(index).find((one) => positions.has(one))
    passUpTo(shared === undefined ? live.length : positions.get(shared)!)
    const position = positions.get(configKeys[index]!)
    // Several live items with this key: the configured item replaces all of them.
    const before =
      position === undefined || liveKeys.indexOf(liveKeys[position]!, position + 1) > 0 ? undefined : live[position]
    merged.push(mergeItem(before, item))
  }
  passUpTo(live.length)
  return merged
}

function positionsOf(keys: readonly string[]): ReadonlyMap<string, number> {
  const positions = new Map<string, number>()
  for (const [index, key] of keys.entries()) if (!positions.has(key)) positions.set(key, index)
  return positions
}
