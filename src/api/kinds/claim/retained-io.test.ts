import { describe, expect, it } from 'vitest'
import { tryCreate, tryStatus, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeClaimKind as kind } from './claim.ts'
import type { PersistentVolumeClaim } from './claim-schema.ts'
import { RETAINED_IO_ANNOTATION, retainedIoOf } from './retained-io.ts'

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

/** Returns the high-water mark and the retained amounts. */
const chargesOf = (claim: PersistentVolumeClaim) => ({ mark: claim.spec?.allocatedResources, ...retainedIoOf(claim) })
const MARK = { mark: { storage: '1Gi' } }

describe('iops and throughput that a claim no longer requests', () => {
  it("PIO-7 are retained at the volume's capacity, each separately", () => {
    const claim = aBoundClaim({ iops: '800', throughput: '100' }, { iops: '800', throughput: '100Mi' })
    expect(chargesOf(claim)).toEqual(MARK)
    const { object, errors } = updateRequests(claim, { throughput: '100' })
    expect(errors).toEqual([])
    expect(chargesOf(object)).toEqual({ ...MARK, iops: '800' })
    expect(chargesOf(updateRequests(object, {}).object)).toEqual({
      ...MARK,
      iops: '800',
      throughput: '100Mi',
    })
  })

  it('PIO-7 are retained by later updates, and users cannot remove them', () => {
    const retainedClaim = updateRequests(aBoundClaim({ iops: '800' }, { iops: '800' }), {}).object
    const labelledResult = tryUpdate(kind, retainedClaim, (draft) => {
      draft.metadata.labels = { a: 'b' }
      draft.metadata.annotations = { [RETAINED_IO_ANNOTATION]: '{"iops":"1"}' }
    })
    expect(chargesOf(labelledResult.object)).toEqual({ ...MARK, iops: '800' })
    const removed = tryUpdate(kind, labelledResult.object, (draft) => delete draft.metadata.annotations)
    expect(chargesOf(removed.object)).toEqual({ ...MARK, iops: '800' })
  })

  it('PIO-7 are no longer retained after a new request, or when the capacity of the volume no longer has them', () => {
    const retainedClaim = updateRequests(aBoundClaim({ iops: '800' }, { iops: '800' }), {}).object
    expect(chargesOf(updateStatus(retainedClaim, { capacity: { storage: '1Gi' } }))).toEqual(MARK)
    expect(chargesOf(updateRequests(retainedClaim, { iops: '300' }).object)).toEqual(MARK)
  })

  it('PIO-7 are retained if the driver confirms a request after it was removed', () => {
    const started = updateStatus(aBoundClaim({ iops: '800' }, {}), { allocatedResources: { iops: '800' } })
    const withoutRequest = updateRequests(started, {}).object
    expect(chargesOf(withoutRequest)).toEqual(MARK)
    const confirmed = updateStatus(withoutRequest, {
      allocatedResources: undefined,
      capacity: { storage: '1Gi', iops: '800' },
    })
    expect(chargesOf(confirmed)).toEqual({ ...MARK, iops: '800' })
  })

  it('PIO-7 are not retained on a claim that never requested them', () => {
    const bound = updateStatus(aBoundClaim({}, {}), { capacity: { storage: '1Gi', iops: '5k' } })
    expect(chargesOf(bound)).toEqual(MARK)
    expect(chargesOf(updateRequests(bound, {}).object)).toEqual(MARK)
  })

  it('PIO-7 cannot be set by a client: the annotation is removed', () => {
    const annotations = { [RETAINED_IO_ANNOTATION]: '{"iops":"800"}', note: 'kept' }
    const { object } = tryCreate(kind, {
      metadata: { name: 'data', namespace: 'shop', annotations },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    })
    expect(object.metadata.annotations).toEqual({ note: 'kept' })
    object.status = { phase: 'Bound', capacity: { storage: '1Gi', iops: '5k' } }
    const annotated = tryUpdate(kind, object, (draft) => (draft.metadata.annotations = annotations)).object
    expect(annotated.metadata.annotations).toEqual({ note: 'kept' })
  })

  it('PIO-7 move to the annotation at the next write of a claim that was stored with them in spec', () => {
    const storedClaim = aBoundClaim({}, { iops: '800' })
    storedClaim.spec = { ...storedClaim.spec, allocatedResources: { storage: '1Gi', iops: '800' } }
    expect(retainedIoOf(storedClaim)).toEqual({ iops: '800' })
    for (const writtenClaim of [updateRequests(storedClaim, {}).object, updateStatus(storedClaim, {})]) {
      expect(chargesOf(writtenClaim)).toEqual({ ...MARK, iops: '800' })
      expect(writtenClaim.metadata.annotations).toEqual({ [RETAINED_IO_ANNOTATION]: '{"iops":"800"}' })
    }
  })
})

it('storage of a claim with retained iops cannot shrink while RecoverExpansionFailure is disabled', () => {
  const gateDisabled = { gates: 'RecoverExpansionFailure=false' }
  const claim = aBoundClaim({ iops: '800' }, { iops: '800' })
  delete claim.spec?.allocatedResources
  const retainedClaim = updateRequests(claim, {}, gateDisabled).object
  expect(chargesOf(retainedClaim)).toEqual({ mark: undefined, iops: '800' })
  const { errors } = tryUpdate(
    kind,
    retainedClaim,
    (draft) => (draft.spec.resources.requests.storage = '512Mi'),
    gateDisabled,
  )
  expect(errors).toEqual(['spec.resources.requests.storage: Forbidden: field can not be less than previous value'])
})
