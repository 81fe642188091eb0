import { describe, expect, it } from 'vitest'
import { layoutOf } from './layout.ts'

describe('the layout', () => {
  const { about, tick, group, all, keys, etcdKey, storeKey, placeKey, placeOf } = layoutOf('/stowage/')
  const compare = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b)

  it('keeps keys apart from what the store notes about itself', () => {
    expect(Buffer.from(etcdKey('core/pods/a')).toString()).toBe('/stowage/keys/core/pods/a')
    for (const key of ['core/pods/a', 'é', '日本', 'keys/x']) expect(storeKey(etcdKey(key))).toBe(key)
    for (const own of [about, tick, group, placeKey(7), keys.start]) expect(storeKey(own)).toBeUndefined()
  })

  it('finds the number of a place again', () => {
    expect(placeOf(placeKey(99))).toBe(99)
    for (const other of [group, etcdKey('place/1'), placeKey(1).subarray(0, -1)]) expect(placeOf(other)).toBeUndefined()
  })

  it('spans everything of the store and nothing else', () => {
    for (const own of [about, tick, group, placeKey(7), etcdKey('a'), etcdKey('\u{10ffff}')]) {
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
