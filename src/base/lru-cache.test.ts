import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LruCache } from './lru-cache.ts'

describe('LruCache', () => {
  it('keeps entries that are used and evicts the others', () => {
    const recent = new LruCache<string, number>(4)
    for (const [index, key] of ['a', 'b', 'c'].entries()) recent.set(key, index)
    expect(recent.get('a')).toBe(0)
    recent.set('d', 3)
    expect([recent.get('a'), recent.get('b'), recent.get('d')]).toEqual([0, undefined, 3])
  })

  it('returns the last value set or undefined, and never holds more than its maximum', () => {
    const step = fc.record({ key: fc.integer({ min: 0, max: 30 }), value: fc.integer(), reads: fc.boolean() })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), fc.integer({ min: 2, max: 20 }), (steps, max) => {
        const recent = new LruCache<number, number>(max)
        const all = new Map<number, number>()
        for (const { key, value, reads } of steps) {
          if (reads) {
            const got = recent.get(key)
            if (got !== undefined) expect(got).toBe(all.get(key))
          } else {
            recent.set(key, value)
            all.set(key, value)
            expect(recent.get(key)).toBe(value)
          }
        }
        const held = [...all.keys()].filter((key) => recent.get(key) !== undefined)
        expect(held.length).toBeLessThanOrEqual(Math.max(2, max))
      }),
    )
  })
})
