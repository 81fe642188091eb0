import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SortedList } from './sorted-list.ts'

describe('SortedList', () => {
  it('keeps distinct items sorted for any additions and removals', () => {
    const steps = fc.array(fc.record({ isAdd: fc.boolean(), value: fc.integer({ min: 0, max: 20 }) }))
    fc.assert(
      fc.property(steps, fc.integer({ min: 0, max: 20 }), (operations, minimum) => {
        const list = new SortedList<number>((a, b) => a - b)
        const model = new Set<number>()
        for (const { isAdd, value } of operations) {
          if (isAdd && !model.has(value)) list.add(value)
          if (!isAdd) list.remove(value)
          if (isAdd) model.add(value)
          else model.delete(value)
        }
        const sortedItems = [...model].sort((a, b) => a - b)
        expect([...list.itemsFrom((item) => item >= minimum)]).toEqual(sortedItems.filter((item) => item >= minimum))
        expect([list.size, list.first]).toEqual([sortedItems.length, sortedItems[0]])
      }),
    )
  })
})
