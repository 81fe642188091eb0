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

const updateRequests = (claim: PersistentVolumeClaim, requests: object, options = {}) =>
  tryUpdate(kind, claim, (draft) => (draft.spec.resources.requests = { storage: '1Gi', ...requests }), options)

const updateStatus = (claim: PersistentVolumeClaim, status: object) =>
  tryStatus(kind, claim, (draft) => (draft.status = { ...draft.status, ...status })).object

const allocatedResourcesOf = ({ spec }: PersistentVolumeClaim) => spec?.allocatedResources

describe('iops and throughput that a claim no longer requests', () => {
  it('PIO-7 are retained at the capacity of the volume, each separately', () => {
    const claim = aBoundClaim({ iops: '800', throughput: '100' }, { iops: '800', throughput: '100Mi' })
    expect(allocatedResourcesOf(claim)).toEqual({ storage: '1Gi' })
    const { object, errors } = updateRequests(claim, { throughput: '100' })
    expect(errors).toEqual([])
    expect(allocatedResourcesOf(object)).toEqual({ storage: '1Gi', iops: '800' })
    expect(allocatedResourcesOf(updateRequests(object, {}).object)).toEqual({
      storage: '1Gi',
      iops: '800',
      throughput: '100Mi',
    })
  })

  it('PIO-7 are retained by later updates, and users cannot remove them', () => {
    const retained = updateRequests(aBoundClaim({ iops: '800' }, { iops: '800' }), {}).object
    const labelled = tryUpdate(kind, retained, (draft) => {
      draft.metadata.labels = { a: 'b' }
      delete draft.spec.allocatedResources
    })
    expect(allocatedResourcesOf(labelled.object)).toEqual({ storage: '1Gi', iops: '800' })
  })

  it('PIO-7 are no longer retained after a new request or an attributes class', () => {
    const retained = updateRequests(aBoundClaim({ iops: '800' }, { iops: '800' }), {}).object
    expect(allocatedResourcesOf(updateStatus(retained, { capacity: { storage: '1Gi' } }))).toEqual({ storage: '1Gi' })
    expect(allocatedResourcesOf(updateRequests(retained, { iops: '300' }).object)).toEqual({ storage: '1Gi' })
  })

  it('PIO-7 are retained if the driver confirms a request after it was removed', () => {
    const started = updateStatus(aBoundClaim({ iops: '800' }, {}), { allocatedResources: { iops: '800' } })
    const withoutRequest = updateRequests(started, {}).object
    expect(allocatedResourcesOf(withoutRequest)).toEqual({ storage: '1Gi' })
    const confirmed = updateStatus(withoutRequest, {
      allocatedResources: undefined,
      capacity: { storage: '1Gi', iops: '800' },
    })
    expect(allocatedResourcesOf(confirmed)).toEqual({ storage: '1Gi', iops: '800' })
  })

  it('PIO-7 are not retained on a claim that never requested them', () => {
    const bound = updateStatus(aBoundClaim({}, {}), { capacity: { storage: '1Gi', iops: '5k' } })
    expect(allocatedResourcesOf(bound)).toEqual({ storage: '1Gi' })
    expect(allocatedResourcesOf(updateRequests(bound, {}).object)).toEqual({ storage: '1Gi' })
  })

  it('PIO-7 do not allow a smaller size while the feature gate is disabled', () => {
    const gateDisabled = { gates: 'RecoverExpansionFailure=false' }
    const claim = aBoundClaim({ iops: '800' }, { iops: '800' })
    delete claim.spec?.allocatedResources
    const retained = updateRequests(claim, {}, gateDisabled).object
    expect(allocatedResourcesOf(retained)).toEqual({ iops: '800' })
    const { errors } = tryUpdate(
      kind,
      retained,
      (draft) => (draft.spec.resources.requests.storage = '512Mi'),
      gateDisabled,
    )
    expect(errors).toEqual(['spec.resources.requests.storage: Forbidden: field can not be less than previous value'])
  })
})
