import { describe, expect, it } from 'vitest'
import { parseFeatureGates } from '../../feature-gates.ts'
import { cellsOf, tryCreate, tryStatus, tryUpdate } from '../kind.fixture.ts'
import { resourceQuotaKind } from './resource-quota.ts'

const aQuota = (spec: object) => ({ metadata: { name: 'team', namespace: 'shop' }, spec })
const errorsOf = (spec: object) => tryCreate(resourceQuotaKind, aQuota(spec)).errors

describe('ResourceQuota', () => {
  it('accepts storage, counts, classes and names with a domain', () => {
    const hard = {
      'requests.storage': '1Ti',
      persistentvolumeclaims: '10',
      'count/persistentvolumeclaims': '10',
      'gold.storageclass.storage.k8s.io/requests.storage': '100Gi',
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims': '5',
      'requests.example.com/gpu': '2',
      'limits.cpu': '500m',
    }
    expect(errorsOf({ hard })).toEqual([])
  })

  it('PIO-7 accepts iops and throughput and stores throughput in bytes per second', () => {
    const hard = {
      'requests.iops': '2k',
      'limits.iops': '200k',
      'requests.throughput': '20',
      'limits.throughput': '200',
    }
    const { object, errors } = tryCreate(resourceQuotaKind, aQuota({ hard }))
    expect(errors).toEqual([])
    expect(object.spec?.hard).toEqual({ ...hard, 'requests.throughput': '20Mi', 'limits.throughput': '200Mi' })
    expect(tryUpdate(resourceQuotaKind, object, aQuota({ hard })).object.spec).toEqual(object.spec)
  })

  it.each([
    ['storage', '1Gi', ['must be a standard resource for quota']],
    ['iops', '1', ['must be a standard resource for quota']],
    ['disks', '1', ['must be a standard resource type or fully qualified', 'must be a standard resource for quota']],
    ['a/b/c', '1', [expect.stringContaining('a valid label key must consist of')]],
  ])('rejects the name %s', (name, amount, details) => {
    expect(errorsOf({ hard: { [name]: amount } })).toEqual(
      details.map((detail) =>
        typeof detail === 'string' ? `spec.hard[${name}]: Invalid value: "${name}": ${detail}` : detail,
      ),
    )
  })

  it.each([
    ['persistentvolumeclaims', '1500m', 'must be an integer'],
    ['count/persistentvolumeclaims', '1500m', 'must be an integer'],
    ['limits.iops', '500m', 'must be an integer'],
    ['requests.storage', '-1', 'must be greater than or equal to 0'],
  ])('rejects %s: %s', (name, amount, detail) => {
    expect(errorsOf({ hard: { [name]: amount } })).toEqual([
      `spec.hard[${name}]: Invalid value: "${amount}": ${detail}`,
    ])
  })

  it('VAC-10 accepts the scope VolumeAttributesClass only with resources of claims', () => {
    const hard = {
      persistentvolumeclaims: '1',
      'requests.storage': '1Gi',
      'count/persistentvolumeclaims': '1',
      'gold.storageclass.storage.k8s.io/requests.storage': '1Gi',
      'limits.iops': '1000',
      'requests.throughput': '100Mi',
    }
    const requirement = { scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }
    expect(errorsOf({ hard, scopes: ['VolumeAttributesClass'] })).toEqual([])
    expect(errorsOf({ hard, scopeSelector: { matchExpressions: [requirement] } })).toEqual([])
    expect(errorsOf({ hard: { ...hard, pods: '1' }, scopes: ['VolumeAttributesClass'] })).toEqual([
      'spec.scopes: Invalid value: ["VolumeAttributesClass"]: unsupported scope applied to resource',
    ])
    expect(errorsOf({ hard: { pods: '1' }, scopeSelector: { matchExpressions: [requirement] } })).toEqual([
      expect.stringMatching(/^spec\.scopeSelector\.matchExpressions: .*: unsupported scope applied to resource$/),
    ])
  })

  it.each([
    [
      'VolumeAttributesClass',
      'In',
      [],
      "spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
    ],
    [
      'VolumeAttributesClass',
      'Exists',
      ['gold'],
      "spec.scopeSelector.matchExpressions.values: Invalid value: [\"gold\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
    ],
    [
      'PriorityClass',
      'Near',
      [],
      'spec.scopeSelector.matchExpressions.operator: Invalid value: "Near": not a valid selector operator',
    ],
    ['Size', 'Exists', [], 'spec.scopeSelector.matchExpressions.scopeName: Invalid value: "Size": unsupported scope'],
    [
      'BestEffort',
      'DoesNotExist',
      [],
      expect.stringContaining(
        'spec.scopeSelector.matchExpressions.operator: Invalid value: "DoesNotExist": must be \'Exists\' when scope is any of',
      ),
    ],
  ])('VAC-10 rejects the selector %s %s %j', (scopeName, operator, values, message) => {
    expect(errorsOf({ scopeSelector: { matchExpressions: [{ scopeName, operator, values }] } })).toEqual([message])
  })

  it('rejects conflicting and unknown scopes', () => {
    expect(errorsOf({ scopes: ['BestEffort', 'NotBestEffort'] })).toEqual([
      'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
    ])
    expect(errorsOf({ scopes: ['Large'] })).toEqual(['spec.scopes: Invalid value: ["Large"]: unsupported scope'])
  })

  it('accepts changes to limits and a new order of scopes, and rejects other scopes', () => {
    const { object } = tryCreate(
      resourceQuotaKind,
      aQuota({ hard: { pods: '1' }, scopes: ['Terminating', 'BestEffort'] }),
    )
    expect(
      tryUpdate(resourceQuotaKind, object, aQuota({ hard: { pods: '9' }, scopes: ['BestEffort', 'Terminating'] }))
        .errors,
    ).toEqual([])
    expect(tryUpdate(resourceQuotaKind, object, aQuota({ hard: { pods: '1' } })).errors).toEqual([
      'spec.scopes: Invalid value: null: field is immutable',
    ])
  })

  it('rejects iops and throughput while the feature gate is disabled, unless they are already stored', () => {
    const gates = parseFeatureGates('VolumeProvisionedIO=false')
    const body = aQuota({ hard: { 'limits.iops': '100' } })
    expect(tryCreate(resourceQuotaKind, body, { gates }).errors).toEqual([
      'spec.hard[limits.iops]: Invalid value: "limits.iops": must be a standard resource for quota',
    ])
    const { object } = tryCreate(resourceQuotaKind, body)
    expect(tryUpdate(resourceQuotaKind, object, aQuota({ hard: { 'limits.iops': '50' } }), { gates }).errors).toEqual(
      [],
    )
  })

  it('has a table row with usage and limits, and rejects an invalid status', () => {
    const { object } = tryCreate(resourceQuotaKind, aQuota({ hard: { pods: '2' } }))
    const hard = { 'requests.storage': '10Gi', pods: '2', 'limits.cpu': '4', 'limits.iops': '100' }
    const status = { hard, used: { 'requests.storage': '1Gi', 'limits.cpu': '500m' } }
    const result = tryStatus(resourceQuotaKind, object, status)
    expect(result.errors).toEqual([])
    expect(cellsOf(resourceQuotaKind, result.object)).toMatchObject({
      Request: 'pods: 0/2, requests.storage: 1Gi/10Gi',
      Limit: 'limits.cpu: 500m/4, limits.iops: 0/100',
    })
    expect(tryStatus(resourceQuotaKind, object, { used: { pods: '-1' } }).errors).toEqual([
      'status.used[pods]: Invalid value: "-1": must be greater than or equal to 0',
    ])
  })
})
