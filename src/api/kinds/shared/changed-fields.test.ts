import { describe, expect, it } from 'vitest'
import { int32, list, map, object, opt, ptr, quantity, req, string } from '../../schema.ts'
import { changedFields, describeChanges, isSameValue } from './changed-fields.ts'

const testType = object('TestType', 'A type for this test.', {
  name: req(1, string, 'Name.'),
  count: opt(2, int32, 'Count.'),
  size: opt(3, quantity, 'Size.'),
  note: ptr(4, string, 'Note.'),
  labels: opt(5, map(string), 'Labels.'),
  parts: opt(6, list(object('Part', 'Part.', { size: opt(1, quantity, 'Size.') })), 'Parts.'),
  inner: ptr(7, object('Inner', 'Inner.', { deep: opt(1, string, 'Deep.') }), 'Inner.'),
})
const changedPaths = (oldObject: object, newObject: object) =>
  changedFields(testType, oldObject, newObject).map(({ path }) => path)

describe('changedFields', () => {
  it.each([
    ['another notation of a quantity', { size: '1Gi' }, { size: '1024Mi' }],
    ['an empty map in place of an absent one', {}, { labels: {} }],
    ['an empty list in place of an absent one', { parts: [] }, {}],
    ['a zero in place of an absent value', { count: 0 }, {}],
    ['another notation of a quantity in a list', { parts: [{ size: '1000' }] }, { parts: [{ size: '1k' }] }],
  ])('ignores %s', (_case, oldObject, newObject) => {
    expect(changedPaths(oldObject, newObject)).toEqual([])
    expect(isSameValue(testType, newObject, oldObject)).toBe(true)
  })

  it.each<[string, object, object, string]>([
    ['another value', { name: 'a' }, { name: 'b' }, 'name'],
    ['another amount', { size: '1Gi' }, { size: '1G' }, 'size'],
    ['an empty pointer field in place of an absent one', {}, { note: '' }, 'note'],
    ['an empty object in place of an absent one', { inner: {} }, {}, 'inner'],
    ['a nested field', { inner: { deep: 'x' } }, { inner: { deep: 'y' } }, 'inner.deep'],
    ['a key with an empty value', {}, { labels: { a: '' } }, 'labels.a'],
    ['a key with an inherited name', {}, { labels: { constructor: 'x' } }, 'labels.constructor'],
    ['a key with a domain', { labels: { 'a.b/c': '1' } }, {}, 'labels[a.b/c]'],
    [
      'the order of a list',
      { parts: [{ size: '1' }, { size: '2' }] },
      { parts: [{ size: '2' }, { size: '1' }] },
      'parts',
    ],
  ])('returns the path of %s', (_case, oldObject, newObject, path) => {
    expect(changedPaths(oldObject, newObject)).toEqual([path])
  })
})

describe('describeChanges', () => {
  it('describes at most ten changes and truncates long values', () => {
    const labels = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`k${i}`, 'x'.repeat(300)]))
    const lines = describeChanges(changedFields(testType, {}, { labels })).split('\n')
    expect(lines).toHaveLength(11)
    expect(lines[0]).toMatch(/^ {2}labels\.k0: \(none\) -> "x{199}…$/)
    expect(lines[10]).toBe('  and 2 more')
  })
})
