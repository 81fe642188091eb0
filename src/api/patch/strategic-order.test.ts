import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { orderItems } from './strategic-order.ts'

const orderText = (items: string, { patchKeys, previousKeys }: { patchKeys: string; previousKeys: string }) =>
  orderItems({
    items: [...items],
    patchKeys: [...patchKeys],
    previousKeys: [...previousKeys],
    keyOf: (item) => item,
  }).join('')

describe('orderItems', () => {
  it.each([
    ['abc', { patchKeys: '', previousKeys: 'abc' }, 'abc', 'items that are not in the patch stay'],
    ['abc', { patchKeys: 'cba', previousKeys: 'abc' }, 'cba', 'items of the patch have the order of the patch'],
    ['abx', { patchKeys: 'x', previousKeys: 'ab' }, 'xab', 'new items precede items that are not in the patch'],
    [
      'abcd',
      { patchKeys: 'db', previousKeys: 'abcd' },
      'acdb',
      'other items precede the items that they preceded before',
    ],
    [
      'abcdx',
      { patchKeys: 'dxa', previousKeys: 'abcd' },
      'bcdxa',
      'other items precede the same items, even though there are new ones',
    ],
    ['ab', { patchKeys: 'zbya', previousKeys: 'ab' }, 'ba', 'keys of absent items are ignored'],
    ['ba', { patchKeys: '', previousKeys: 'ab' }, 'ab', 'the previous order is restored'],
  ])('%s with %j becomes %s: %s', (items, keyOrders, result) => {
    expect(orderText(items, keyOrders)).toBe(result)
  })

  const keys = fc.uniqueArray(fc.constantFrom(...'abcdefgh')).map((list) => list.join(''))

  it('keeps every item, the order of the patch, and the previous order of the other items', () => {
    fc.assert(
      fc.property(keys, keys, (previousKeys, patchKeys) => {
        const items = [...new Set(previousKeys + patchKeys)].join('')
        const result = orderText(items, { patchKeys, previousKeys })
        expect([...result].sort()).toEqual([...items].sort())
        expect([...result].filter((key) => patchKeys.includes(key)).join('')).toBe(patchKeys)
        const otherKeys = [...previousKeys].filter((key) => !patchKeys.includes(key)).join('')
        expect([...result].filter((key) => !patchKeys.includes(key)).join('')).toBe(otherKeys)
      }),
    )
  })

  it('is idempotent', () => {
    fc.assert(
      fc.property(keys, keys, (previousKeys, patchKeys) => {
        const orderedText = orderText([...new Set(previousKeys + patchKeys)].join(''), { patchKeys, previousKeys })
        expect(orderText(orderedText, { patchKeys, previousKeys: orderedText })).toBe(orderedText)
      }),
    )
  })
})
