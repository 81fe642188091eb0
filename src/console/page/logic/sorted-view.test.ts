import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type RowChange, SortedView } from './sorted-view.ts'

interface Row {
  readonly uid: string
  readonly size: number
}

const rules = { matches: ({ size }: Row) => size % 3 !== 0, compare: (a: Row, b: Row) => a.size - b.size }

it('SYS-13 returns the same rows after changes as after a full sort', () => {
  const row = fc.record({ uid: fc.integer({ min: 0, max: 80 }).map(String), size: fc.integer({ min: 0, max: 20 }) })
  const change = fc.record({ row, isDeleted: fc.boolean() })
  fc.assert(
    fc.property(fc.array(row, { maxLength: 80 }), fc.array(fc.array(change, { maxLength: 30 })), (first, batches) => {
      const rows = new Map(first.map((item) => [item.uid, item]))
      const view = new SortedView<Row>(rules)
      view.rebuild(rules, rows.values())
      for (const batch of batches) {
        const changes = batch.map(({ row: after, isDeleted }): RowChange<Row> => {
          const before = rows.get(after.uid)
          if (isDeleted) rows.delete(after.uid)
          else rows.set(after.uid, after)
          return { ...(before ? { before } : {}), ...(isDeleted ? {} : { after }) }
        })
        view.apply(changes, () => rows.values())
        const expected = new SortedView<Row>(rules)
        expected.rebuild(rules, rows.values())
        expect(view.rows).toEqual(expected.rows)
      }
    }),
  )
})

it('replaces only the changed row if its position is unchanged', () => {
  const view = new SortedView<Row>(rules)
  const before = { uid: 'b', size: 2 }
  view.rebuild(rules, [{ uid: 'a', size: 1 }, before, { uid: 'c', size: 4 }])
  const [first, , last] = view.rows
  view.apply([{ before, after: { uid: 'b', size: 2 } }], () => [])
  expect(view.rows[0]).toBe(first)
  expect(view.rows[1]).not.toBe(before)
  expect(view.rows[2]).toBe(last)
})
