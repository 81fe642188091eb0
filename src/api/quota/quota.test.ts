import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../kind.ts'
import { ALL_KINDS } from '../kinds/index.ts'
import type { ResourceQuota } from '../kinds/resource-quota/resource-quota-schema.ts'
import { changesOf, chargeQuota, kindsOfKeys, podResources, QuotaAccount, tally, textOf } from './index.ts'
import { isInScope } from './scopes.ts'
import { usageOf } from './usage.ts'

const CLAIMS = { group: '', plural: 'persistentvolumeclaims' }
const PODS = { group: '', plural: 'pods' }
const usage = (kind: typeof CLAIMS, object: object) => textOf(usageOf(kind, { metadata: {}, ...object }))

describe('the usage of an object', () => {
  it.each([
    ['5G', '10G', '10G'],
    ['10G', '5G', '10G'],
    ['1001m', undefined, '2'],
    ['1Gi', '1073741825', '1073741825'],
  ])('REX-4 (68) a claim of %s with %s allocated uses %s', (request, allocated, expected) => {
    const claim = (where: 'spec' | 'status') => ({
      spec: { resources: { requests: { storage: request } } },
      ...(allocated && where === 'status' ? { status: { allocatedResources: { storage: allocated } } } : {}),
    })
    expect(usage(CLAIMS, claim('status'))['requests.storage']).toBe(expected)
    const spec = { ...claim('spec').spec, ...(allocated ? { allocatedResources: { storage: allocated } } : {}) }
    expect(usage(CLAIMS, { spec })['requests.storage']).toBe(expected)
  })

  it('PIO-7 charges the provided iops until the driver confirms less; a claim without a request is not charged', () => {
    const iops = (requests: object, status: object) =>
      usage(CLAIMS, { spec: { resources: { requests: { storage: '1Gi', ...requests } } }, status })['limits.iops']
    const capacity = { iops: '500' }
    expect(iops({ iops: '100' }, { capacity })).toBe('500')
    expect(iops({ iops: '100' }, { capacity, allocatedResources: { iops: '100' } })).toBe('500')
    expect(iops({ iops: '100' }, { capacity: { iops: '100' }, allocatedResources: { iops: '100' } })).toBe('100')
    expect(iops({ iops: '900' }, { capacity })).toBe('900')
    expect(iops({}, { capacity })).toBeUndefined()
  })

  it('SYS-10 formats a sum above the binary maximum so that parsing it loses nothing', () => {
    const claim = (name: string) => ({ metadata: { name }, spec: { resources: { requests: { storage: '7Ei' } } } })
    const hard = { 'requests.storage': '1e30' }
    const counted = textOf(tally({ hard }, ['requests.storage'], () => [claim('a'), claim('b'), claim('c')]))
    expect(counted).toEqual({ 'requests.storage': String(21n * 2n ** 60n) })
    const quota = { metadata: { name: 'q' }, spec: { hard }, status: { used: counted } } as ResourceQuota
    expect(textOf(QuotaAccount.of(quota).used)).toEqual(counted)
  })

  it('REX-4 ignores similar key names', () => {
    const spec = { storageClassName: 'gold', resources: { requests: { storage: '1Gi' } } }
    expect(Object.keys(usage(CLAIMS, { metadata: {}, spec })).sort()).toEqual([
      'count/persistentvolumeclaims',
      'gold.storageclass.storage.k8s.io/persistentvolumeclaims',
      'gold.storageclass.storage.k8s.io/requests.storage',
      'persistentvolumeclaims',
      'requests.storage',
    ])
    const foreign = ['storage', 'bronze.storage', 'gold.storage.k8s.io/requests.storage', 'services', 'count/events']
    expect(kindsOfKeys(foreign)).toEqual([])
  })

  it('SYS-4 maps every key of an object back to its kind, for all kinds', () => {
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

  it('SYS-4 charges a pod for its containers or its largest init container', () => {
    const container = (name: string, cpu: string, more: object = {}) => ({
      name,
      resources: { requests: { cpu } },
      ...more,
    })
    const spec = {
      containers: [container('a', '1'), container('b', '2')],
      initContainers: [container('sidecar', '1', { restartPolicy: 'Always' }), container('setup', '5')],
      overhead: { cpu: '250m' },
    } as never
    const whole = (withOverhead: boolean) => textOf(podResources(spec, 'requests', { withOverhead }))
    expect(whole(false)).toEqual({ cpu: '6' })
    expect(whole(true)).toEqual({ cpu: '6250m' })
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

  it('VAC-10 (73) match by operator, for a claim without a class and one with three', () => {
    const without = claim('', undefined, '')
    expect(['DoesNotExist', 'Exists'].map((operator) => matches(operator, undefined, without))).toEqual([true, false])
    expect(['In', 'NotIn'].map((operator) => matches(operator, ['class1'], without))).toEqual([false, true])
    const moving = claim('class1', 'class2', 'class3')
    for (const name of NAMES.slice(0, 3)) expect(matches('In', [name], moving)).toBe(true)
    expect(matches('In', ['class4'], moving)).toBe(false)
    expect(matches('Exists', undefined, moving)).toBe(true)
    expect(matches('DoesNotExist', undefined, moving)).toBe(false)
    expect(matches('NotIn', ['class4'], moving)).toBe(true)
    expect(matches('NotIn', NAMES, moving)).toBe(false)
  })

  it('VAC-10 In matches a listed class, NotIn an unlisted one, and at least one of them always matches', () => {
    const name = fc.option(fc.constantFrom('', ...NAMES), { nil: undefined })
    const values = fc.uniqueArray(fc.constantFrom(...NAMES), { minLength: 1 })
    fc.assert(
      fc.property(name, name, name, values, (spec, current, target, listed) => {
        const object = claim(spec, current, target)
        const names = [spec, current, target].filter((one) => one)
        expect(matches('In', listed, object)).toBe(names.some((one) => listed.includes(one as string)))
        const others = NAMES.filter((one) => !listed.includes(one))
        expect(matches('NotIn', listed, object)).toBe(
          names.length === 0 || names.some((one) => others.includes(one as string)),
        )
        expect(matches('In', listed, object) || matches('NotIn', listed, object)).toBe(true)
        expect(matches('Exists', undefined, object)).not.toBe(matches('DoesNotExist', undefined, object))
      }),
    )
  })

  it('VAC-10 scopes of pods do not match claims, those of claims do not match pods, and none matches other kinds', () => {
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

describe('incremental charging', () => {
  const KEYS = [
    'persistentvolumeclaims',
    'requests.storage',
    'limits.iops',
    'requests.iops',
    'a.storageclass.storage.k8s.io/requests.storage',
  ]
  const claim = fc.record({
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
  const step = fc.record({
    name: fc.constantFrom('x', 'y', 'z'),
    next: fc.option(claim, { nil: undefined }),
    isStatus: fc.boolean(),
    isStored: fc.boolean(),
  })
  const selector = fc.constantFrom(undefined, 'In', 'NotIn', 'Exists', 'DoesNotExist')
  const objectOf = (name: string, it: typeof claim extends fc.Arbitrary<infer C> ? C : never) => ({
    metadata: { name, uid: name },
    spec: {
      storageClassName: it.storageClassName,
      volumeAttributesClassName: it.volumeAttributesClassName,
      resources: { requests: { storage: it.storage, ...(it.iops ? { iops: it.iops } : {}) } },
    },
    status: it.allocated ? { allocatedResources: { storage: it.allocated } } : {},
  })

  it('REX-4 VAC-10 PIO-7 equals a full recount and exceeds the limit only by a status write', () => {
    fc.assert(
      fc.property(selector, fc.array(step, { maxLength: 30 }), fc.boolean(), (operator, steps, isNew) => {
        const values = operator === 'In' || operator === 'NotIn' ? { values: ['gold'] } : {}
        const matchExpressions = operator ? [{ scopeName: 'VolumeAttributesClass', operator, ...values }] : []
        const hard = Object.fromEntries(
          KEYS.map((key) => [key, key.endsWith('storage') ? '12Gi' : key.endsWith('iops') ? '700' : '2']),
        )
        const used = Object.fromEntries(KEYS.map((key) => [key, '0']))
        const quota = {
          metadata: { name: 'q' },
          spec: { hard, scopeSelector: { matchExpressions } },
          ...(isNew ? {} : { status: { hard, used } }),
        } as unknown as ResourceQuota
        let account = QuotaAccount.of(quota)
        const stored = new Map<string, KubeObject>()
        const contents = () => [...stored.values()]
        let mayExceed = false
        for (const { name, next, isStatus, isStored } of steps) {
          const before = stored.get(name)
          const after = next && objectOf(name, next)
          const changes = changesOf({ kind: CLAIMS, before, after })(account)
          const mayReject = !isStatus || !before
          if (changes.length > 0) {
            const charged = chargeQuota({ account, changes, uid: name, mayReject, contents })
            if (charged.is === 'exceeded') continue
            // Between two group commits only the stored text remains.
            account = isStored ? QuotaAccount.of(charged.account.toObject()) : charged.account
          }
          if (!mayReject) mayExceed = true
          if (after) stored.set(name, after)
          else stored.delete(name)
          if (account.used.size === 0) continue
          const { status } = account.toObject()
          expect(status?.used).toEqual(textOf(tally(quota.spec, KEYS, contents)))
          if (!mayExceed) expect(Number(status?.used?.persistentvolumeclaims)).toBeLessThanOrEqual(2)
        }
      }),
      { numRuns: 500 },
    )
  })
})
