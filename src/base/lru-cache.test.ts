import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LruCache } from './lru-cache.ts'

describe('LruCache', () => {
  it('keeps entries that are used and evicts the others', () => {
    const cache = new LruCache<string, number>(4)
    for (const [index, key] of ['a', 'b', 'c'].entries()) cache.set(key, index)
    expect(cache.get('a')).toBe(0)
    cache.set('d', 3)
    expect([cache.get('a'), cache.get('b'), cache.get('d')]).toEqual([0, undefined, 3])
  })

  it('keeps no more than the maximum weight, except for a single heavier entry', () => {
    const cache = new LruCache<string, number>(10, (weight) => weight)
    for (const key of ['a', 'b', 'c']) cache.set(key, 3)
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([undefined, 3, 3])
    cache.set('heavy', 100)
    expect(cache.get('heavy')).toBe(100)
    cache.set('d', 1)
    cache.set('e', 1)
    cache.evictOld()
    expect([cache.get('heavy'), cache.get('d')]).toEqual([undefined, 1])
  })

  it('evicts the entries that were not used between two calls of evictOld', () => {
    const cache = new LruCache<string, number>(10)
    cache.set('used', 1)
    cache.set('unused', 2)
    cache.evictOld()
    cache.get('used')
    cache.evictOld()
    expect([cache.get('used'), cache.get('unused')]).toEqual([1, undefined])
  })

  it('returns the last value set or undefined, and holds at most its maximum of entries', () => {
    const step = fc.record({ key: fc.integer({ min: 0, max: 30 }), value: fc.integer(), isRead: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 2, max: 20 }), (steps, max) => {
        const cache = new LruCache<number, number>(max)
        const model = new Map<number, number>()
        for (const { key, value, isRead } of steps) {
          if (isRead) {
            const cachedValue = cache.get(key)
            if (cachedValue !== undefined) expect(cachedValue).toBe(model.get(key))
          } else {
            cache.set(key, value)
            model.set(key, value)
            expect(cache.get(key)).toBe(value)
          }
        }
        const cachedKeys = [...model.keys()].filter((key) => cache.get(key) !== undefined)
        expect(cachedKeys.length).toBeLessThanOrEqual(max)
      }),
    )
  })
})
