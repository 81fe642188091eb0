import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind as claimKind } from '../claim/claim.ts'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeKind as volumeKind } from '../volume/volume.ts'

const GATE_DISABLED = { gates: 'VolumeProvisionedIO=false' }

const aClaim = (requests: object, limits?: object) => ({
  metadata: { name: 'data', namespace: 'shop' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi', ...requests }, limits } },
})
const create = (requests: object, limits?: object, options = {}) =>
  tryCreate(claimKind, aClaim(requests, limits), options)

function aBoundClaim(requests: object, limits?: object) {
  const { object } = create(requests, limits)
  object.status = { phase: 'Bound', capacity: { storage: '10Gi' } }
  return object
}

describe('iops and throughput of a claim', () => {
  it.each([
    ['100', '100Mi'],
    [10, '10Mi'],
    ['50Mi', '50Mi'],
    ['1000M', '1G'],
    ['1000Mi', '1000Mi'],
    ['160000', '160000Mi'],
    ['1048575', '1048575Mi'],
    ['1Mi', '1Mi'],
  ])('PIO-1 are normalized: throughput %s is stored as %s', (input, normalizedText) => {
    const { object, errors } = create({ iops: 1500, throughput: input }, { throughput: '1E' })
    expect(errors).toEqual([])
    expect(object.spec?.resources?.requests).toEqual({ storage: '10Gi', iops: '1500', throughput: normalizedText })
  })

  it('PIO-1 are normalized in limits', () => {
    expect(create({}, { iops: '2k', throughput: 20 }).object.spec?.resources?.limits).toEqual({
      iops: '2k',
      throughput: '20Mi',
    })
  })

  it('PIO-1 are unchanged by an update with the same amount in another notation', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 40 }), (throughput) => {
        const storedObject = create({ throughput, iops: throughput }).object
        const updateResult = tryUpdate(claimKind, storedObject, (draft) => {
          draft.spec.resources.requests.throughput = throughput
          draft.spec.resources.requests.iops = throughput
        })
        expect(updateResult.errors).toEqual([])
        expect(updateResult.object).toEqual(storedObject)
      }),
    )
  })

  it.each([
    ['spec.resources.requests.iops: Invalid value: "0": must be greater than zero', { iops: 0 }, undefined],
    ['spec.resources.requests.iops: Invalid value: "-5": must be greater than zero', { iops: -5 }, undefined],
    ['spec.resources.requests.iops: Invalid value: "1500m": must be an integer', { iops: '1.5' }, undefined],
    ['spec.resources.requests.throughput: Invalid value: "500m": must be an integer', { throughput: '0.5' }, undefined],
    ['spec.resources.limits.iops: Invalid value: "0": must be greater than zero', {}, { iops: '0' }],
    [
      'spec.resources.requests.iops: Invalid value: "200": must be less than or equal to iops limit of 100',
      { iops: 200 },
      { iops: 100 },
    ],
    [
      'spec.resources.requests.throughput: Invalid value: "20Mi": must be less than or equal to throughput limit of 10Mi',
      { throughput: 20 },
      { throughput: '10Mi' },
    ],
  ])('PIO-1 are rejected: %s', (message, requests, limits) => {
    expect(create(requests, limits).errors).toEqual([message])
  })

  it.each<[string, object | undefined, object | undefined]>([
    ['raised', { iops: 100 }, { iops: 200 }],
    ['lowered', { iops: 200, throughput: 20 }, { iops: 100, throughput: 10 }],
    ['added', undefined, { iops: 100, throughput: 10 }],
    ['removed', { iops: 100, throughput: 10 }, undefined],
  ])('PIO-1 can be %s in requests and limits of a bound claim', (_case, oldAmounts, newAmounts) => {
    const { errors } = tryUpdate(claimKind, aBoundClaim(oldAmounts ?? {}, oldAmounts), (draft) => {
      draft.spec.resources = { requests: { storage: '10Gi', ...newAmounts }, ...(newAmounts && { limits: newAmounts }) }
    })
    expect(errors).toEqual([])
  })

  it('PIO-1 are immutable before the claim is bound', () => {
    const { errors } = tryUpdate(claimKind, create({ iops: 100 }).object, (draft) => {
      draft.spec.resources.requests.iops = 200
    })
    expect(errors).toEqual([
      'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n' +
        '  resources.requests.iops: "100" -> "200"',
    ])
  })

  it('are dropped on create while the feature gate is disabled', () => {
    const { object, errors } = create({ iops: -1, throughput: 10 }, { iops: 5 }, GATE_DISABLED)
    expect(errors).toEqual([])
    expect(object.spec?.resources).toEqual({ requests: { storage: '10Gi' } })
  })

  it('are kept while the feature gate is disabled, but not added', () => {
    const storedObject = aBoundClaim({ throughput: 100 })
    const { object, errors } = tryUpdate(
      claimKind,
      storedObject,
      (draft) => {
        draft.spec.resources.requests.throughput = 100
        draft.spec.resources.requests.iops = 5
        draft.spec.resources.limits = { iops: 10 }
      },
      GATE_DISABLED,
    )
    expect(errors).toEqual([])
    expect(object.spec?.resources).toEqual({ requests: { storage: '10Gi', throughput: '100Mi' } })
  })

  it.each<[string, (requests: Draft) => void]>([
    ['changed', (requests) => (requests.iops = 200)],
    ['removed', (requests) => delete requests.iops],
  ])('cannot be %s while the feature gate is disabled', (_case, change) => {
    const storedObject = aBoundClaim({ iops: 100 })
    const { errors } = tryUpdate(
      claimKind,
      storedObject,
      (draft) => change(draft.spec.resources.requests),
      GATE_DISABLED,
    )
    expect(errors).toEqual([
      'spec.resources.requests.iops: Forbidden: update is forbidden when the VolumeProvisionedIO feature gate is disabled',
    ])
  })
})

describe('iops and throughput of a volume', () => {
  const aVolume = (capacity: object) => ({
    metadata: { name: 'pv-1' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '10Gi', ...capacity },
      csi: { driver: 'csi.example.com', volumeHandle: 'v1' },
    },
  })

  it('PIO-1 are stored in the capacity, with throughput in bytes/s', () => {
    const { object, errors } = tryCreate(volumeKind, aVolume({ iops: 100, throughput: 10 }))
    expect(errors).toEqual([])
    expect(object.spec?.capacity).toEqual({ storage: '10Gi', iops: '100', throughput: '10Mi' })
  })

  it.each([
    ['spec.capacity[iops]: Invalid value: "0": must be greater than zero', { iops: 0 }],
    ['spec.capacity[iops]: Invalid value: "1500m": must be an integer', { iops: '1.5' }],
    [
      'spec.capacity: Unsupported value: {"gpus":"1","storage":"10Gi"}: supported values: "storage", "iops", "throughput"',
      { gpus: 1 },
    ],
  ])('PIO-1 are rejected: %s', (message, capacity) => {
    expect(tryCreate(volumeKind, aVolume(capacity)).errors).toEqual([message])
  })

  it('are dropped while the feature gate is disabled, unless the volume already has them', () => {
    const createResult = tryCreate(volumeKind, aVolume({ iops: 100 }), GATE_DISABLED)
    expect([createResult.errors, createResult.object.spec?.capacity]).toEqual([[], { storage: '10Gi' }])
    const storedObject = tryCreate(volumeKind, aVolume({ iops: 100 })).object
    const addThroughput = (draft: Draft) => Object.assign(draft.spec.capacity, { throughput: '10' })
    const updateResult = tryUpdate(volumeKind, storedObject, addThroughput, GATE_DISABLED)
    expect([updateResult.errors, updateResult.object.spec?.capacity]).toEqual([[], { storage: '10Gi', iops: '100' }])
  })
})
