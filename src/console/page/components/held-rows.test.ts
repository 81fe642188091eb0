import { expect, it } from 'vitest'
import { countMoved } from './held-rows.ts'

const rows = (text: string) => [...text].map((uid) => ({ uid }))

it.each([
  ['abc', 'abc', 0],
  ['abc', 'abcd', 1],
  ['abc', 'bc', 1],
  ['abc', 'acb', 2],
  ['abc', 'bcd', 2],
])('from %s to %s are %d changes', (before, after, count) => {
  expect(countMoved(rows(before), rows(after))).toBe(count)
})
