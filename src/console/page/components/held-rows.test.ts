import { expect, it } from 'vitest'
import { countChangedRows } from './held-rows.ts'

const rows = (text: string) => [...text].map((uid) => ({ uid }))

it.each([
  ['abc', 'abc', 0],
  ['abc', 'abcd', 1],
  ['abc', 'bc', 1],
  ['abc', 'acb', 2],
  ['abc', 'bcd', 2],
])('countChangedRows returns for the rows %s and then %s the number %d', (before, after, count) => {
  expect(countChangedRows(rows(before), rows(after))).toBe(count)
})
