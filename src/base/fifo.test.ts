import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Fifo } from './fifo.ts'

describe('Fifo', () => {
  it('returns items in insertion order for any sequence of calls', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 200 }), (operations) => {
        const fifo = new Fifo<number>()
        const model: number[] = []
        for (const [index, isAdd] of operations.entries()) {
          if (isAdd) {
            fifo.add(index)
            model.push(index)
          } else expect(fifo.take()).toBe(model.shift())
          expect(fifo.size).toBe(model.length)
        }
      }),
    )
  })

  it('keeps the order when it compacts its array', () => {
    const fifo = new Fifo<number>()
    const results: (number | undefined)[] = []
    for (let number = 0; number < 5_000; number++) fifo.add(number)
    for (let i = 0; i < 4_000; i++) results.push(fifo.take())
    for (let number = 5_000; number < 6_000; number++) fifo.add(number)
    while (fifo.size > 0) results.push(fifo.take())
    expect(results).toEqual(Array.from({ length: 6_000 }, (_, number) => number))
    expect(fifo.take()).toBeUndefined()
  })

  it('is empty after clear()', () => {
    const fifo = new Fifo<string>()
    fifo.add('a')
    fifo.clear()
    expect(fifo.size).toBe(0)
    expect(fifo.take()).toBeUndefined()
  })
})
