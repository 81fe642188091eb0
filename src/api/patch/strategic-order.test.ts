import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { orderItems } from './strategic-order.ts'

const order = (items: string, { wanted, before }: { wanted: string; before: string }) =>
  orderItems({ items: [...items], wanted: [...wanted], before: [...before], keyOf: (item) => item }).join('')

describe('orderItems', () => {
  it.each([
    ['abc', { wanted: '', before: 'abc' }, 'abc', 'what the patch does not speak of stays'],
    ['abc', { wanted: 'cba', before: 'abc' }, 'cba', 'what it speaks of takes its order'],
    ['abx', { wanted: 'x', before: 'ab' }, 'xab', 'new items come before those not spoken of'],
    ['abcd', { wanted: 'db', before: 'abcd' }, 'acdb', 'others go before the item they used to precede'],
    ['abcdx', { wanted: 'dxa', before: 'abcd' }, 'bcdxa', 'and so they do when new items stand between'],
    ['ab', { wanted: 'zbya', before: 'ab' }, 'ba', 'keys of items that are not there do not matter'],
    ['ba', { wanted: '', before: 'ab' }, 'ab', 'items in any order come out in the order before'],
  ])('%s with %j becomes %s: %s', (items, orders, result) => {
    expect(order(items, orders)).toBe(result)
  })

  const keys = fc.uniqueArray(fc.constantFrom(...'abcdefgh')).map((list) => list.join(''))

  it('keeps every item, the order of the patch, and the previous order of the rest', () => {
    fc.assert(
      fc.property(keys, keys, (before, wanted) => {
        const items = [...new Set(before + wanted)].join('')
        const result = order(items, { wanted, before })
        expect([...result].sort()).toEqual([...items].sort())
        expect([...result].filter((key) => wanted.includes(key)).join('')).toBe(wanted)
        const others = [...before].filter((key) => !wanted.includes(key)).join('')
        expect([...result].filter((key) => !wanted.includes(key)).join('')).toBe(others)
      }),
    )
  })

  it('is idempotent', () => {
    fc.assert(
      fc.property(keys, keys, (before, wanted) => {
        const once = order([...new Set(before + wanted)].join(''), { wanted, before })
        expect(order(once, { wanted, before: once })).toBe(once)
      }),
    )
  })
})
