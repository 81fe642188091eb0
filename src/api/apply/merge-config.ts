// Merges a configuration into an object: sets the fields of the configuration and keeps all others. Pure; unchanged parts
// are shared. A list of type map or set keeps its other items, and items in the configuration have the order of the
// configuration:
//   [a b c d] with [d x b]  →  [a c d x b]

import { setOwnProperty } from '../json-value.ts'
import type { DeclaredValue } from '../schema.ts'
import { valueElement } from './path-element.ts'
import type { ItemsShape, ObjectShape, Shape } from './shape.ts'

type ObjectValue = Record<string, unknown>

export function mergeConfig(shape: ObjectShape, live: ObjectValue, config: ObjectValue): ObjectValue {
  return mergeAt(shape, live, config) as ObjectValue
}

function mergeAt(shape: Shape, live: DeclaredValue, config: DeclaredValue): unknown {
  if (live === undefined) return config
  switch (shape.is) {
    case 'leaf':
      return config
    case 'object': {
      const mergedValue: ObjectValue = { ...live }
      for (const field of shape.fields) {
        const value = config[field.name]
        if (value !== undefined) mergedValue[field.name] = mergeAt(field.shape(), live[field.name], value)
      }
      return mergedValue
    }
    case 'map': {
      const mergedValue: ObjectValue = { ...live }
      for (const key of Object.keys(config)) {
        const liveValue = Object.hasOwn(live, key) ? live[key] : undefined
        setOwnProperty(mergedValue, key, mergeAt(shape.value, liveValue, config[key]))
      }
      return mergedValue
    }
    case 'set':
      return mergeItems(live, config, valueElement, (_, item) => item)
    case 'items':
      return mergeItems(live, config, shape.keyOf, (liveValue, item) => mergeAt(shape.item, liveValue, item))
  }
}

function mergeItems(
  live: readonly DeclaredValue[],
  config: readonly DeclaredValue[],
  keyOf: ItemsShape['keyOf'] | typeof valueElement,
  mergeItem: (liveValue: unknown, item: unknown) => unknown,
): unknown[] {
  const toKey = keyOf as (item: unknown) => string
  const liveKeys = live.map(toKey)
  const configKeys = config.map(toKey)
  const configKeySet = new Set(configKeys)
  const { positions, duplicateKeys } = indexKeys(liveKeys)
  const copyEnds = findCopyEnds(configKeys, positions, live.length)
  const mergedValue: unknown[] = []
  let nextLive = 0
  const copyLiveItems = (end: number) => {
    for (; nextLive < end; nextLive++) if (!configKeySet.has(liveKeys[nextLive]!)) mergedValue.push(live[nextLive])
  }
  for (const [index, item] of config.entries()) {
    const key = configKeys[index]!
    copyLiveItems(copyEnds[index]!)
    const position = positions.get(key)
    // If several live items have this key, the configured item replaces all of them.
    const liveValue = position === undefined || duplicateKeys.has(key) ? undefined : live[position]
    mergedValue.push(mergeItem(liveValue, item))
  }
  copyLiveItems(live.length)
  return mergedValue
}

/**
 * Returns for each configured item the position up to which live items are copied before it: the live position of the item
 * or, if it is new, of the next configured item that is live.
 */
function findCopyEnds(
  configKeys: readonly string[],
  positions: ReadonlyMap<string, number>,
  liveLength: number,
): readonly number[] {
  const ends: number[] = []
  let end = liveLength
  for (let index = configKeys.length - 1; index >= 0; index--) {
    end = positions.get(configKeys[index]!) ?? end
    ends[index] = end
  }
  return ends
}

/** Returns the first position of each key, and the keys that occur more than once. */
function indexKeys(keys: readonly string[]) {
  const positions = new Map<string, number>()
  const duplicateKeys = new Set<string>()
  for (const [index, key] of keys.entries()) {
    if (positions.has(key)) duplicateKeys.add(key)
    else positions.set(key, index)
  }
  return { positions, duplicateKeys }
}
