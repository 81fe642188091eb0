import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../kind.ts'
import { ALL_KINDS } from '../kinds/index.ts'
import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { compareQuantities } from '../quantity.ts'
import {
  calculateUsage,
  chargeQuota,
  createChangeCalculator,
  formatAmounts,
  kindsOfKeys,
  podResources,
  QuotaAccount,
} from './index.ts'
import { isInScope } from './scopes.ts'
import { usageOf } from './usage.ts'

const CLAIMS = { group: '', plural: 'persistentvolumeclaims' }
const PODS = { group: '', plural: 'pods' }
const formatUsage = (kind: typeof CLAIMS, object: object) => formatAmounts(usageOf(kind, { metadata: {}, ...object }))

describe("an object's usage", () => {
  it.each([
    ['5G', '10G', '10G'],
    ['10G', '5G', '10G'],
    ['1001m', undefined, '2'],
    ['1Gi', '1073741825', '1073741825'],
  ])('REX-4 of a claim of %s with %s allocated is %s', (request, allocated, expected) => {
    const spec = { resources: { requests: { storage: request } } }
    const allocatedResources = allocated ? { storage: allocated } : undefined
    expect(formatUsage(CLAIMS, { spec, status: { allocatedResources } })['requests.storage']).toBe(expected)
    expect(formatUsage(CLAIMS, { spec: { ...spec, allocatedResources } })['requests.storage']).toBe(expected)
  })

  it('PIO-7 includes the provided iops until the driver confirms less, but not for a claim without a request', () => {
    const iopsUsage = (requests: object, status: object) =>
      formatUsage(CLAIMS, { spec: { resources: { requests: { storage: '1Gi', ...requests } } }, status })['limits.iops']
    const capacity = { iops: '500' }
    expect(iopsUsage({ iops: '100' }, { capacity })).toBe('500')
    expect(iopsUsage({ iops: '100' }, { capacity, allocatedResources: { iops: '100' } })).toBe('500')
    expect(iopsUsage({ iops: '100' }, { capacity: { iops: '100' }, allocatedResources: { iops: '100' } })).toBe('100')
    expect(iopsUsage({ iops: '900' }, { capacity })).toBe('900')
    expect(iopsUsage({}, { capacity })).toBeUndefined()
  })

  it('formats a sum above the binary maximum without loss', () => {
    const claim = (name: string) => ({ metadata: { name }, spec: { resources: { requests: { storage: '7Ei' } } } })
    const hard = { 'requests.storage': '1e30' }
    const usedAmounts = formatAmounts(
      calculateUsage({ hard }, ['requests.storage'], () => [claim('a'), claim('b'), claim('c')]),
    )
    expect(usedAmounts).toEqual({ 'requests.storage': String(21n * 2n ** 60n) })
    const quota = { metadata: { name: 'q' }, spec: { hard }, status: { used: usedAmounts } } as ResourceQuota
    expect(formatAmounts(QuotaAccount.create(quota).used)).toEqual(usedAmounts)
  })

  it('has only the documented keys, and similar keys belong to no kind', () => {
    const spec = { storageClassName: 'gold', resources: { requests: { storage: '1Gi' } } }
    expect(Object.keys(formatUsage(CLAIMS, { metadata: {}, spec })).sort()).toEqual([
      'count/persistentvolumeclaims',
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims',
      'gold.storageclass.storage.k8s.io/requests.storage',
      'persistentvolumeclaims',
      'requests.storage',
    ])
    const unrelatedKeys = [
      'storage',
      'bronze.storage',
      'gold.storage.k8s.io/requests.storage',
      'services',
      'count/events',
    ]
    expect(kindsOfKeys(unrelatedKeys)).toEqual([])
  })

  it('has only keys that kindsOfKeys maps to the kind of the object', () => {
    const claim = {
      metadata: {},
      spec: { storageClassName: 'x', resources: { requests: { storage: '1', iops: '1', throughput: '1Mi' } } },
    }
    const requests = { cpu: '1', memory: '1', 'ephemeral-storage': '1', 'hugepages-2Mi': '1', 'example.com/gpu': '1' }
    const pod = {
      metadata: {},
      spec: { containers: [{ name: 'c', resources: { requests, limits: { cpu: '1', memory: '1' } } }] },
    }
    for (const { group, plural, namespaced, isForeign, isReview } of ALL_KINDS) {
      if (!namespaced || isForeign || isReview || plural === 'events') continue
      const object = plural === 'pods' ? pod : claim
      for (const key of usageOf({ group, plural }, object).keys()) {
        expect(kindsOfKeys([key]), key).toEqual([{ group, plural }])
      }
    }
  })

  it('for a pod is the sum of its containers or its largest init container, whichever is larger, plus the sidecars', () => {
    const container = (name: string, cpu: string, fields: object = {}) => ({
      name,
      resources: { requests: { cpu } },
      ...fields,
    })
    const spec = {
      containers: [container('a', '1'), container('b', '2')],
      initContainers: [container('sidecar', '1', { restartPolicy: 'Always' }), container('setup', '5')],
      overhead: { cpu: '250m' },
    } as never
    const podRequests = (includesOverhead: boolean) =>
      formatAmounts(podResources(spec, 'requests', { includesOverhead }))
    expect(podRequests(false)).toEqual({ cpu: '6' })
    expect(podRequests(true)).toEqual({ cpu: '6250m' })
  })
})

describe('the scopes of a quota', () => {
  const NAMES = ['class1', 'class2', 'class3', 'class4']
  const claim = (spec?: string, current?: string, target?: string) => ({
    metadata: {},
    spec: { volumeAttributesClassName: spec },
    status: {
      currentVolumeAttributesClassName: current,
      ...(target === undefined
        ? {}
        : { modifyVolumeStatus: { targetVolumeAttributesClassName: target, status: 'Pending' } }),
    },
  })
  const matches = (operator: string, values: string[] | undefined, object: KubeObject) =>
    isInScope(
      { scopeSelector: { matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator, values }] } } as never,
      CLAIMS,
      object,
    )

  it('VAC-10 match a claim without a class and a claim with three classes by operator', () => {
    const claimWithoutClass = claim('', undefined, '')
    expect(['DoesNotExist', 'Exists'].map((operator) => matches(operator, undefined, claimWithoutClass))).toEqual([
      true,
      false,
    ])
    expect(['In', 'NotIn'].map((operator) => matches(operator, ['class1'], claimWithoutClass))).toEqual([false, true])
    const claimWithThreeClasses = claim('class1', 'class2', 'class3')
    for (const name of NAMES.slice(0, 3)) expect(matches('In', [name], claimWithThreeClasses)).toBe(true)
    expect(matches('In', ['class4'], claimWithThreeClasses)).toBe(false)
    expect(matches('Exists', undefined, claimWithThreeClasses)).toBe(true)
    expect(matches('DoesNotExist', undefined, claimWithThreeClasses)).toBe(false)
    expect(matches('NotIn', ['class4'], claimWithThreeClasses)).toBe(true)
    expect(matches('NotIn', NAMES, claimWithThreeClasses)).toBe(false)
  })

  it('VAC-10 match a listed class with In and an unlisted class with NotIn', () => {
    const name = fc.option(fc.constantFrom('', ...NAMES), { nil: undefined })
    const values = fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: 1 })
    fc.assert(
      fc.property(name, name, name, values, (spec, current, target, listedNames) => {
        const object = claim(spec, current, target)
        const names = [spec, current, target].filter((className) => className)
        expect(matches('In', listedNames, object)).toBe(
          names.some((className) => listedNames.includes(className as string)),
        )
        const unlistedNames = NAMES.filter((className) => !listedNames.includes(className))
        expect(matches('NotIn', listedNames, object)).toBe(
          names.length === 0 || names.some((className) => unlistedNames.includes(className as string)),
        )
        expect(matches('In', listedNames, object) || matches('NotIn', listedNames, object)).toBe(true)
        expect(matches('Exists', undefined, object)).not.toBe(matches('DoesNotExist', undefined, object))
      }),
    )
  })

  it('VAC-10 match only the kind that they apply to', () => {
    const scopes = [
      'Terminating',
      'NotTerminating',
      'BestEffort',
      'NotBestEffort',
      'PriorityClass',
      'CrossNamespacePodAffinity',
    ]
    for (const scope of scopes) expect(isInScope({ scopes: [scope] } as never, CLAIMS, claim('class1'))).toBe(false)
    const pod = { metadata: {}, spec: { containers: [] } }
    expect(isInScope({ scopes: ['VolumeAttributesClass'] }, PODS, pod)).toBe(false)
    expect(isInScope({ scopes: ['BestEffort'] }, { group: '', plural: 'secrets' }, { metadata: {} })).toBe(false)
    expect(isInScope({ scopes: [] }, { group: '', plural: 'secrets' }, { metadata: {} })).toBe(true)
  })
})

describe('chargeQuota', () => {
  const KEYS = [
    'persistentvolumeclaims',
    'requests.storage',
    'limits.iops',
    'requests.iops',
    'a.storageclass.storage.k8s.io/requests.storage',
  ]
  const anyClaim = fc.record({
    storageClassName: fc.constantFrom('a', 'b'),
    volumeAttributesClassName: fc.constantFrom(undefined, 'gold', 'silver'),
    storage: fc.integer({ min: 1, max: 9 }).map((n) => `${n}Gi`),
    iops: fc.option(
      fc.integer({ min: 1, max: 9 }).map((n) => `${n}00`),
      { nil: undefined },
    ),
    allocated: fc.option(
      fc.integer({ min: 1, max: 9 }).map((n) => `${n}Gi`),
      { nil: undefined },
    ),
  })
  const anyWrite = fc.record({
    name: fc.constantFrom('x', 'y', 'z'),
    next: fc.option(anyClaim, { nil: undefined }),
    isStatus: fc.boolean(),
    endsCommit: fc.boolean(),
  })
  const anyOperator = fc.constantFrom(undefined, 'In', 'NotIn', 'Exists', 'DoesNotExist')
  const claimOf = (name: string, fields: typeof anyClaim extends fc.Arbitrary<infer C> ? C : never) => ({
    metadata: { name, uid: name },
    spec: {
      storageClassName: fields.storageClassName,
      volumeAttributesClassName: fields.volumeAttributesClassName,
      resources: { requests: { storage: fields.storage, ...(fields.iops ? { iops: fields.iops } : {}) } },
    },
    status: fields.allocated ? { allocatedResources: { storage: fields.allocated } } : {},
  })

  it('REX-4 VAC-10 PIO-7 returns the same usage as calculateUsage, and lets usage exceed the limit only after a status write', () => {
    fc.assert(
      fc.property(anyOperator, fc.array(anyWrite, { maxLength: 30 }), fc.boolean(), (operator, writes, isNewQuota) => {
        const values = operator === 'In' || operator === 'NotIn' ? { values: ['gold'] } : {}
        const matchExpressions = operator ? [{ scopeName: 'VolumeAttributesClass', operator, ...values }] : []
        const hard = Object.fromEntries(
          KEYS.map((key) => [key, key.endsWith('storage') ? '12Gi' : key.endsWith('iops') ? '700' : '2']),
        )
        const used = Object.fromEntries(KEYS.map((key) => [key, '0']))
        const quota = {
          metadata: { name: 'q' },
          spec: { hard, scopeSelector: { matchExpressions } },
          ...(isNewQuota ? {} : { status: { hard, used } }),
        } as unknown as ResourceQuota
        let account = QuotaAccount.create(quota)
        const storedObjects = new Map<string, KubeObject>()
        const listObjects = () => [...storedObjects.values()]
        let mayExceed = false
        for (const { name, next, isStatus, endsCommit } of writes) {
          const oldObject = storedObjects.get(name)
          const newObject = next && claimOf(name, next)
          const changes = createChangeCalculator({ kind: CLAIMS, oldObject, newObject })(account)
          const canReject = !isStatus || !oldObject
          if (changes.length > 0) {
            const result = chargeQuota({ account, changes, uid: name, canReject, listObjects })
            if (result.is === 'exceeded') continue
            // The next group commit starts from the stored quota.
            account = endsCommit ? QuotaAccount.create(result.account.toObject()) : result.account
          }
          if (!canReject) mayExceed = true
          if (newObject) storedObjects.set(name, newObject)
          else storedObjects.delete(name)
          if (account.used.size === 0) continue
          const { status } = account.toObject()
          expect(status?.used).toEqual(formatAmounts(calculateUsage(quota.spec, KEYS, listObjects)))
          if (mayExceed) continue
          for (const key of KEYS) expect(compareQuantities(status!.used![key]!, hard[key]!), key).toBeLessThanOrEqual(0)
        }
      }),
      { numRuns: 500 },
    )
  })
})
