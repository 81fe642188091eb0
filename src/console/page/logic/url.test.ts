import { expect, it } from 'vitest'
import { formatRoute, formatSort, linkTo, parseList, parseRoute, parseSort, toggleInList } from './url.ts'

it('parses a formatted route to the same screen, filters and selection', () => {
  const route = { screen: 'claims', params: { ns: 'shop', q: 'class:fast & more', claim: 'shop/orders' } } as const
  expect(parseRoute(formatRoute(route))).toEqual(route)
})

it('shows the overview for an unknown screen and an empty fragment', () => {
  expect(parseRoute('#/nothing').screen).toBe('overview')
  expect(parseRoute('').screen).toBe('overview')
})

it('formats equal views as one address', () => {
  expect(formatRoute({ screen: 'claims', params: { b: '2', a: '1', empty: '' } })).toBe('#/claims?a=1&b=2')
  expect(linkTo('nodes', { node: undefined })).toBe('#/nodes')
})

it('parses and formats sort orders and lists', () => {
  expect(parseSort('-size', 'name')).toEqual({ column: 'size', isDescending: true })
  expect(parseSort(undefined, 'name')).toEqual({ column: 'name', isDescending: false })
  expect(formatSort({ column: 'size', isDescending: true })).toBe('-size')
  expect(parseList('')).toEqual([])
  expect(toggleInList('Pending,Lost', 'Lost')).toBe('Pending')
  expect(toggleInList(undefined, 'Lost')).toBe('Lost')
})
