import { expect, it } from 'vitest'
import { listAttentionItems } from './attention.ts'
import { aClaimView } from './claim.fixture.ts'

const nothing = { claims: [], nodes: [], operations: [], quotas: [], capacities: [] }
const why = (reason: string) =>
  ({ uid: '', namespace: 'shop', name: '', state: 'failed', reason, message: `because of ${reason}` }) as const

it('SYS-13 groups failed claims with the same cause into one entry, before warnings', () => {
  const failed = { fields: { phase: 'Pending' }, why: why('ProvisioningFailed') }
  const items = listAttentionItems({
    ...nothing,
    claims: [
      aClaimView('full', { usage: { usedBytes: 9.9 * 1024 ** 3 } }),
      aClaimView('a', failed),
      aClaimView('b', failed),
      aClaimView('c', { fields: { phase: 'Pending' }, why: why('QuotaExceeded') }),
    ],
  })
  expect(items.map(({ tone, title }) => [tone, title])).toEqual([
    ['bad', '2 claims in 1 namespace: ProvisioningFailed'],
    ['bad', 'Claim shop/c: Pending'],
    ['warn', '1 volume at least 90% full'],
  ])
  expect(items[0]).toMatchObject({
    cause: 'because of ProvisioningFailed',
    href: '#/claims?q=why%3Aprovisioningfailed',
  })
  expect(items[1]!.href).toBe('#/claims?claim=shop%2Fc')
})

it('returns no entries for a cluster without problems', () => {
  expect(listAttentionItems({ ...nothing, claims: [aClaimView('a')] })).toEqual([])
})
