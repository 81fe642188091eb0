import { expect, it } from 'vitest'
import type { QuotaRow } from '../rows/cluster.ts'
import { computeQuotaEffects, countFittingClaims } from './quota-check.ts'

const GIB = 1024 ** 3
const quota: QuotaRow = {
  uid: 'q',
  name: 'storage',
  namespace: 'shop',
  createdMs: 0,
  deletedMs: undefined,
  hard: {
    'requests.storage': '100Gi',
    persistentvolumeclaims: '10',
    'fast.storageclass.storage.k8s.io/requests.storage': '20Gi',
    pods: '5',
  },
  used: {
    'requests.storage': '60Gi',
    persistentvolumeclaims: '9',
    'fast.storageclass.storage.k8s.io/requests.storage': '15Gi',
  },
  scopes: [],
}

it('charges a request to the limits of its namespace and class', () => {
  const effects = computeQuotaEffects([quota], { namespace: 'shop', className: 'fast', bytes: 10 * GIB, claims: 1 })
  expect(effects.map(({ limit, usedAfter, fits }) => [limit.key, usedAfter, fits])).toEqual([
    ['requests.storage', 70 * GIB, true],
    ['persistentvolumeclaims', 10, true],
    ['fast.storageclass.storage.k8s.io/requests.storage', 25 * GIB, false],
  ])
  expect(computeQuotaEffects([quota], { namespace: 'other', className: 'fast', bytes: GIB, claims: 1 })).toEqual([])
  expect(computeQuotaEffects([quota], { namespace: 'shop', className: 'slow', bytes: GIB, claims: 0 })).toHaveLength(1)
})

it('does not decide whether a request fits a limit whose usage is not known yet', () => {
  const [effect] = computeQuotaEffects([{ ...quota, used: {} }], {
    namespace: 'shop',
    className: 'slow',
    bytes: GIB,
    claims: 0,
  })
  expect(effect).toMatchObject({ usedAfter: undefined, fits: undefined })
})

it('computes the number of claims that fit from the smallest limit', () => {
  expect(countFittingClaims([quota], { namespace: 'shop', className: 'slow', bytes: 10 * GIB })).toBe(1)
  expect(countFittingClaims([quota], { namespace: 'shop', className: 'fast', bytes: 6 * GIB })).toBe(0)
  expect(countFittingClaims([], { namespace: 'shop', className: 'fast', bytes: GIB })).toBeUndefined()
})
