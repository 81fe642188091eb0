import { expect, it } from 'vitest'
import { aClaimView } from './claim.fixture.ts'
import { compareClaims, matchClaims } from './claim-view.ts'

const why = {
  uid: '',
  namespace: 'shop',
  name: '',
  state: 'failed',
  reason: 'ProvisioningFailed',
  message: 'full',
} as const

it('filters by text, column, exclusion, status and problems', () => {
  const rows = [
    aClaimView('orders'),
    aClaimView('users', { fields: { className: 'slow' } }),
    aClaimView('logs', { why, fields: { phase: 'Pending' } }),
  ]
  const names = (filter: Parameters<typeof matchClaims>[0]) => rows.filter(matchClaims(filter)).map(({ name }) => name)
  expect(names({ q: 'ord' })).toEqual(['orders'])
  expect(names({ q: 'class:slow' })).toEqual(['users'])
  expect(names({ q: '-class:slow' })).toEqual(['orders', 'logs'])
  expect(names({ q: 'why:provisioning' })).toEqual(['logs'])
  expect(names({ q: 'unknown:value' })).toEqual([])
  expect(names({ status: 'Pending' })).toEqual(['logs'])
  expect(names({ problems: '1' })).toEqual(['logs'])
  expect(names({ ns: 'other' })).toEqual([])
})

it('sorts rows without a value last in both directions', () => {
  const rows = [
    aClaimView('unknown'),
    aClaimView('full', { usage: { usedBytes: 9 * 1024 ** 3 } }),
    aClaimView('empty', { usage: { usedBytes: 0 } }),
  ]
  const names = (isDescending: boolean) =>
    rows.toSorted(compareClaims({ column: 'used', isDescending })).map(({ name }) => name)
  expect(names(false)).toEqual(['empty', 'full', 'unknown'])
  expect(names(true)).toEqual(['full', 'empty', 'unknown'])
})

it("shows the node of a claim's pod, else of its volume, else the selected node", () => {
  const pod = {
    uid: 'p',
    name: 'p',
    namespace: 'shop',
    node: 'n1',
    phase: 'Running',
    claims: ['a'],
    createdMs: 0,
    deletedMs: undefined,
  }
  expect(aClaimView('a', { pods: [pod], usage: { node: 'n2' } }).node).toBe('n1')
  expect(aClaimView('a', { usage: { node: 'n2' }, fields: { selectedNode: 'n3' } }).node).toBe('n2')
  expect(aClaimView('a', { fields: { selectedNode: 'n3' } }).node).toBe('n3')
})
