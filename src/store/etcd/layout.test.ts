import { describe, expect, it } from 'vitest'
import { layoutOf } from './layout.ts'

describe('layoutOf', () => {
  const { about, tick, group, allKeys, keys, etcdKey, storeKey, subKey, subOf } = layoutOf('/stowage/')
  const compare = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b)

  it('separates the keys of the store from its metadata', () => {
    expect(Buffer.from(etcdKey('core/pods/a')).toString()).toBe('/stowage/keys/core/pods/a')
    for (const key of ['core/pods/a', 'é', '日本', 'keys/x']) expect(storeKey(etcdKey(key))).toBe(key)
    for (const key of [about, tick, group, subKey(7), keys.start]) expect(storeKey(key)).toBeUndefined()
  })

  it('round-trips the sub-revision of a marker key', () => {
    expect(subOf(subKey(99))).toBe(99)
    for (const outsideKey of [group, etcdKey('place/1'), subKey(1).subarray(0, -1)])
      expect(subOf(outsideKey)).toBeUndefined()
  })

  it('defines a range that contains exactly the etcd keys below the prefix', () => {
    for (const key of [about, tick, group, subKey(7), etcdKey('a'), etcdKey('\u{10ffff}')]) {
      expect(compare(allKeys.start, key)).toBeLessThanOrEqual(0)
      expect(compare(key, allKeys.end)).toBeLessThan(0)
    }
    for (const outsideKey of ['/stowage', '/stowage-2/keys/a', '/stowage0', '/stowagf/']) {
      const isInside =
        compare(allKeys.start, Buffer.from(outsideKey)) <= 0 && compare(Buffer.from(outsideKey), allKeys.end) < 0
      expect(isInside, outsideKey).toBe(false)
    }
    expect(compare(tick, keys.end)).toBeGreaterThan(0)
  })
})
