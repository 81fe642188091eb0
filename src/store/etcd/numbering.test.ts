import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Numbering, SPAN } from './numbering.ts'

describe('the numbering', () => {
  it('begins at 0 whatever etcd has seen before', () => {
    expect(new Numbering({ base: 7_000 }).revisionOf(7_000n)).toBe(0)
  })

  it('finds etcd’s revision and the place in the group again, and keeps their order', () => {
    const base = 41
    const moment = fc.record({
      etcd: fc.integer({ min: base, max: 1e12 }),
      place: fc.integer({ min: 0, max: SPAN - 1 }),
    })
    fc.assert(
      fc.property(moment, moment, (a, b) => {
        const numbering = new Numbering({ base })
        const [first, second] = [a, b].map(({ etcd, place }) => numbering.revisionOf(etcd, place)) as [number, number]
        expect(numbering.etcdRevisionOf(first)).toBe(a.etcd)
        expect(numbering.placeOf(first)).toBe(a.place)
        expect(first < second).toBe(a.etcd < b.etcd || (a.etcd === b.etcd && a.place < b.place))
      }),
    )
  })
})
