import { describe, expect, it } from 'vitest'
import { layoutOf } from './layout.ts'

describe('layoutOf', () => {
  const { about, tick, group, all, keys, etcdKey, storeKey, subKey, subOf } = layoutOf('/stowage/')
  const compare = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b)

  it('separates the keys of the store from its own metadata', () => {
    expect(Buffer.from(etcdKey('core/pods/a')).toString()).toBe('/stowage/keys/core/pods/a')
    for (const key of ['core/pods/a', 'é', '日本', 'keys/x']) expect(storeKey(etcdKey(key))).toBe(key)
    for (const own of [about, tick, group, subKey(7), keys.start]) expect(storeKey(own)).toBeUndefined()
  })

  it('round-trips the sub-revision of a marker key', () => {
    expect(subOf(subKey(99))).toBe(99)
    for (const other of [group, etcdKey('place/1'), subKey(1).subarray(0, -1)]) expect(subOf(other)).toBeUndefined()
  })

  it('spans exactly the keys of the store', () => {
    for (const own of [about, tick, group, subKey(7), etcdKey('a'), etcdKey('\u{10ffff}')]) {
      expect(compare(all.start, own)).toBeLessThanOrEqual(0)
      expect(compare(own, all.end)).toBeLessThan(0)
    }
    for (const other of ['/stowage', '/stowage-2/keys/a', '/stowage0', '/stowagf/']) {
      const isInside = compare(all.start, Buffer.from(other)) <= 0 && compare(Buffer.from(other), all.end) < 0
      expect(isInside, other).toBe(false)
    }
    expect(compare(tick, keys.end)).toBeGreaterThan(0)
  })
})
