import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind as claimKind } from '../claim/claim.ts'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeKind as volumeKind } from '../volume/volume.ts'

const OFF = { gates: 'VolumeProvisionedIO=false' }

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
  ])('PIO-1 throughput %s is stored as %s', (given, stored) => {
    const { object, errors } = create({ iops: 1500, throughput: given }, { throughput: '1E' })
    expect(errors).toEqual([])
    expect(object.spec?.resources?.requests).toEqual({ storage: '10Gi', iops: '1500', throughput: stored })
  })

  it('PIO-1 normalizes limits like requests', () => {
    expect(create({}, { iops: '2k', throughput: 20 }).object.spec?.resources?.limits).toEqual({
      iops: '2k',
      throughput: '20Mi',
    })
  })

  it('PIO-1 accepts the same amount in another notation as no change', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 40 }), (throughput) => {
        const stored = create({ throughput, iops: throughput }).object
        const again = tryUpdate(claimKind, stored, (draft) => {
          draft.spec.resources.requests.throughput = throughput
          draft.spec.resources.requests.iops = throughput
        })
        expect(again.errors).toEqual([])
        expect(again.object).toEqual(stored)
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
  ])('PIO-1 rejects: %s', (message, requests, limits) => {
    expect(create(requests, limits).errors).toEqual([message])
  })

  it.each<[string, object | undefined, object | undefined]>([
    ['up', { iops: 100 }, { iops: 200 }],
    ['down', { iops: 200, throughput: 20 }, { iops: 100, throughput: 10 }],
    ['from none', undefined, { iops: 100, throughput: 10 }],
    ['to none', { iops: 100, throughput: 10 }, undefined],
  ])('PIO-1 can change %s on a bound claim, requests and limits alike', (_how, before, after) => {
    const { errors } = tryUpdate(claimKind, aBoundClaim(before ?? {}, before), (draft) => {
      draft.spec.resources = { requests: { storage: '10Gi', ...after }, ...(after && { limits: after }) }
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

  it('PIO-1 are dropped on create while the gate is off', () => {
    const { object, errors } = create({ iops: -1, throughput: 10 }, { iops: 5 }, OFF)
    expect(errors).toEqual([])
    expect(object.spec?.resources).toEqual({ requests: { storage: '10Gi' } })
  })

  it('PIO-1 are kept while the gate is off, and new ones are dropped', () => {
    const stored = aBoundClaim({ throughput: 100 })
    const { object, errors } = tryUpdate(
      claimKind,
      stored,
      (draft) => {
        draft.spec.resources.requests.throughput = 100
        draft.spec.resources.requests.iops = 5
        draft.spec.resources.limits = { iops: 10 }
      },
      OFF,
    )
    expect(errors).toEqual([])
    expect(object.spec?.resources).toEqual({ requests: { storage: '10Gi', throughput: '100Mi' } })
  })

  it.each<[string, (requests: Draft) => void]>([
    ['changed', (requests) => (requests.iops = 200)],
    ['removed', (requests) => delete requests.iops],
  ])('PIO-1 cannot be %s while the gate is off', (_how, change) => {
    const stored = aBoundClaim({ iops: 100 })
    const { errors } = tryUpdate(claimKind, stored, (draft) => change(draft.spec.resources.requests), OFF)
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

  it('PIO-1 are stored beside storage, throughput in bytes/s', () => {
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
  ])('PIO-1 rejects: %s', (message, capacity) => {
    expect(tryCreate(volumeKind, aVolume(capacity)).errors).toEqual([message])
  })

  it('PIO-1 are dropped while the gate is off, unless the volume has them already', () => {
    const made = tryCreate(volumeKind, aVolume({ iops: 100 }), OFF)
    expect([made.errors, made.object.spec?.capacity]).toEqual([[], { storage: '10Gi' }])
    const stored = tryCreate(volumeKind, aVolume({ iops: 100 })).object
    const give = (draft: Draft) => Object.assign(draft.spec.capacity, { throughput: '10' })
    const kept = tryUpdate(volumeKind, stored, give, OFF)
    expect([kept.errors, kept.object.spec?.capacity]).toEqual([[], { storage: '10Gi', iops: '100' }])
  })
})
