import { describe, expect, it } from 'vitest'
import { tryCreate, tryStatus, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeClaimKind as kind } from './claim.ts'
import type { PersistentVolumeClaim } from './claim-schema.ts'

function aBoundClaim(requests: object, capacity: object): PersistentVolumeClaim {
  const { object } = tryCreate(kind, {
    metadata: { name: 'data', namespace: 'shop' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi', ...requests } } },
  })
  object.status = { phase: 'Bound', capacity: { storage: '1Gi', ...capacity } as Record<string, string> }
  return object
}

const withRequests = (claim: PersistentVolumeClaim, requests: object, options = {}) =>
  tryUpdate(kind, claim, (draft) => (draft.spec.resources.requests = { storage: '1Gi', ...requests }), options)

const withStatus = (claim: PersistentVolumeClaim, status: object) =>
  tryStatus(kind, claim, (draft) => (draft.status = { ...draft.status, ...status })).object

const marksOf = ({ spec }: PersistentVolumeClaim) => spec?.allocatedResources

describe('iops and throughput that a claim no longer requests', () => {
  it('PIO-7 are retained at the capacity of the volume, each separately', () => {
    const claim = aBoundClaim({ iops: '800', throughput: '100' }, { iops: '800', throughput: '100Mi' })
    expect(marksOf(claim)).toEqual({ storage: '1Gi' })
    const { object, errors } = withRequests(claim, { throughput: '100' })
    expect(errors).toEqual([])
    expect(marksOf(object)).toEqual({ storage: '1Gi', iops: '800' })
    expect(marksOf(withRequests(object, {}).object)).toEqual({ storage: '1Gi', iops: '800', throughput: '100Mi' })
  })

  it('PIO-7 are retained over later edits, and users cannot remove them', () => {
    const retained = withRequests(aBoundClaim({ iops: '800' }, { iops: '800' }), {}).object
    const labelled = tryUpdate(kind, retained, (draft) => {
      draft.metadata.labels = { a: 'b' }
      delete draft.spec.allocatedResources
    })
    expect(marksOf(labelled.object)).toEqual({ storage: '1Gi', iops: '800' })
  })

  it('PIO-7 are no longer retained after a new request or an attributes class', () => {
    const retained = withRequests(aBoundClaim({ iops: '800' }, { iops: '800' }), {}).object
    expect(marksOf(withStatus(retained, { capacity: { storage: '1Gi' } }))).toEqual({ storage: '1Gi' })
    expect(marksOf(withRequests(retained, { iops: '300' }).object)).toEqual({ storage: '1Gi' })
  })

  it('PIO-7 are retained when the driver confirms a request that was removed meanwhile', () => {
    const started = withStatus(aBoundClaim({ iops: '800' }, {}), { allocatedResources: { iops: '800' } })
    const withoutRequest = withRequests(started, {}).object
    expect(marksOf(withoutRequest)).toEqual({ storage: '1Gi' })
    const confirmed = withStatus(withoutRequest, {
      allocatedResources: undefined,
      capacity: { storage: '1Gi', iops: '800' },
    })
    expect(marksOf(confirmed)).toEqual({ storage: '1Gi', iops: '800' })
  })

  it('PIO-7 are not retained on a claim that never requested them', () => {
    const bound = withStatus(aBoundClaim({}, {}), { capacity: { storage: '1Gi', iops: '5k' } })
    expect(marksOf(bound)).toEqual({ storage: '1Gi' })
    expect(marksOf(withRequests(bound, {}).object)).toEqual({ storage: '1Gi' })
  })

  it('PIO-7 do not allow lowering the size while the gate for that is off', () => {
    const off = { gates: 'RecoverExpansionFailure=false' }
    const claim = aBoundClaim({ iops: '800' }, { iops: '800' })
    delete claim.spec?.allocatedResources
    const retained = withRequests(claim, {}, off).object
    expect(marksOf(retained)).toEqual({ iops: '800' })
    const { errors } = tryUpdate(kind, retained, (draft) => (draft.spec.resources.requests.storage = '512Mi'), off)
    expect(errors).toEqual(['spec.resources.requests.storage: Forbidden: field can not be less than previous value'])
  })
})
