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

  it('returns the last value set or undefined, and never holds more than its maximum', () => {
    const step = fc.record({ key: fc.integer({ min: 0, max: 30 }), value: fc.integer(), isRead: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 2, max: 20 }), (steps, max) => {
        const cache = new LruCache<number, number>(max)
        const model = new Map<number, number>()
        for (const { key, value, isRead } of steps) {
          if (isRead) {
            const cached = cache.get(key)
            if (cached !== undefined) expect(cached).toBe(model.get(key))
          } else {
            cache.set(key, value)
            model.set(key, value)
            expect(cache.get(key)).toBe(value)
          }
        }
        const cachedKeys = [...model.keys()].filter((key) => cache.get(key) !== undefined)
        expect(cachedKeys.length).toBeLessThanOrEqual(Math.max(2, max))
      }),
    )
  })
})
