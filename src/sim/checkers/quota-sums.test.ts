// Tests the quota checker with commits that keep the sums right and commits that do not.
import { describe, expect, it } from 'vitest'
import { createQuotaSums } from './quota-sums.ts'

function createQuotaFixture() {
  const violations: string[] = []
  const checker = createQuotaSums('team', (text) => void violations.push(text))
  const claim = (name: string, storage: string, status: object = {}) => ({
    key: `core/persistentvolumeclaims/team/${name}`,
    object: { metadata: { name, uid: name }, spec: { resources: { requests: { storage } } }, status },
  })
  const quota = (hard: object, used?: object, otherSpec: object = {}) => ({
    key: 'core/resourcequotas/team/q',
    object: {
      metadata: { name: 'q', uid: 'q' },
      spec: { hard, ...otherSpec },
      ...(used ? { status: { hard, used } } : {}),
    },
  })
  return { violations, checker, claim, quota }
}

describe('quota sums', () => {
  it('accept a charge in the same commit as its write, and a quota that is not counted yet', () => {
    const { violations, checker, claim, quota } = createQuotaFixture()
    checker.apply([claim('a', '2Gi')])
    checker.apply([quota({ 'requests.storage': '5Gi' })])
    checker.apply([claim('b', '3Gi'), quota({ 'requests.storage': '5Gi' }, { 'requests.storage': '5Gi' })])
    checker.apply([quota({ 'requests.storage': '1Gi' }, { 'requests.storage': '5Gi' })]) // lowered below the usage
    checker.apply([
      { key: 'core/persistentvolumeclaims/team/a', object: undefined },
      quota({ 'requests.storage': '1Gi' }, { 'requests.storage': '3Gi' }),
    ])
    checker.apply([{ key: 'core/persistentvolumeclaims/elsewhere/a', object: claim('a', '9Gi').object }])
    expect(violations).toEqual([])
  })

  it('report a write without a charge, and a charge without a write', () => {
    const { violations, checker, claim, quota } = createQuotaFixture()
    checker.apply([quota({ persistentvolumeclaims: '5' }, { persistentvolumeclaims: '0' })])
    checker.apply([claim('a', '1Gi')])
    checker.apply([quota({ persistentvolumeclaims: '5' }, { persistentvolumeclaims: '2' })])
    expect(violations).toEqual([
      'quota q reports persistentvolumeclaims=0, but the objects add up to 1',
      'quota q reports persistentvolumeclaims=2, but the objects add up to 1',
    ])
  })

  it('report a charge above the limit, unless a status caused it', () => {
    const { violations, checker, claim, quota } = createQuotaFixture()
    const hard = { 'requests.storage': '3Gi' }
    checker.apply([claim('a', '2Gi'), quota(hard, { 'requests.storage': '2Gi' })])
    const allocated = { allocatedResources: { storage: '4Gi' } }
    checker.apply([claim('a', '2Gi', allocated), quota(hard, { 'requests.storage': '4Gi' })])
    expect(violations).toEqual([])
    checker.apply([claim('b', '1Gi'), quota(hard, { 'requests.storage': '5Gi' })])
    expect(violations).toEqual(['quota q: a charge raised requests.storage from 4Gi to 5368709120, above 4294967296'])
    checker.apply([claim('c', '1Gi', allocated), quota(hard, { 'requests.storage': '9Gi' })]) // created with a status
    expect(violations).toHaveLength(1)
  })

  it('count the largest single claim, and classes that a claim requests or has', () => {
    const { checker, claim } = createQuotaFixture()
    const claimWithIo = (name: string, iops: string, volumeAttributesClassName: string, current?: string) => {
      const { key, object } = claim(name, '1Gi', { currentVolumeAttributesClassName: current })
      return { key, object: { ...object, spec: { volumeAttributesClassName, resources: { requests: { iops } } } } }
    }
    checker.apply([
      claimWithIo('a', '300', 'gold'),
      claimWithIo('b', '200', 'silver', 'gold'),
      claimWithIo('c', '500', 'silver'),
    ])
    const hard = { 'requests.iops': '1', 'limits.iops': '1', persistentvolumeclaims: '1' }
    const selector = (operator: string, values?: string[]) => ({
      hard,
      scopeSelector: { matchExpressions: [{ operator, ...(values ? { values } : {}) }] },
    })
    const numbers = (spec: object) => [...checker.addUp(spec).values()].map(Number)
    expect(numbers({ hard })).toEqual([500, 1000, 3])
    expect(numbers(selector('In', ['gold']))).toEqual([300, 500, 2])
    expect(numbers(selector('NotIn', ['gold']))).toEqual([500, 700, 2])
    expect(numbers(selector('DoesNotExist'))).toEqual([0, 0, 0])
  })
})
