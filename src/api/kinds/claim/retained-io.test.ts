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

const asking = (claim: PersistentVolumeClaim, requests: object, options = {}) =>
  tryUpdate(kind, claim, (draft) => (draft.spec.resources.requests = { storage: '1Gi', ...requests }), options)

const told = (claim: PersistentVolumeClaim, status: object) =>
  tryStatus(kind, claim, (draft) => (draft.status = { ...draft.status, ...status })).object

const marksOf = ({ spec }: PersistentVolumeClaim) => spec?.allocatedResources

describe('iops and throughput that a claim no longer asks for', () => {
  it('PIO-7 stay marked at what the volume keeps, each by itself', () => {
    const claim = aBoundClaim({ iops: '800', throughput: '100' }, { iops: '800', throughput: '100Mi' })
    expect(marksOf(claim)).toEqual({ storage: '1Gi' })
    const { object, errors } = asking(claim, { throughput: '100' })
    expect(errors).toEqual([])
    expect(marksOf(object)).toEqual({ storage: '1Gi', iops: '800' })
    expect(marksOf(asking(object, {}).object)).toEqual({ storage: '1Gi', iops: '800', throughput: '100Mi' })
  })

  it('PIO-7 stay marked over later edits, and no user can take the mark away', () => {
    const kept = asking(aBoundClaim({ iops: '800' }, { iops: '800' }), {}).object
    const labelled = tryUpdate(kind, kept, (draft) => {
      draft.metadata.labels = { a: 'b' }
      delete draft.spec.allocatedResources
    })
    expect(marksOf(labelled.object)).toEqual({ storage: '1Gi', iops: '800' })
  })

  it('PIO-7 are no longer marked once a class decides, or another request does', () => {
    const kept = asking(aBoundClaim({ iops: '800' }, { iops: '800' }), {}).object
    expect(marksOf(told(kept, { capacity: { storage: '1Gi' } }))).toEqual({ storage: '1Gi' })
    expect(marksOf(asking(kept, { iops: '300' }).object)).toEqual({ storage: '1Gi' })
  })

  it('PIO-7 are marked when the driver confirms what was taken back meanwhile', () => {
    const begun = told(aBoundClaim({ iops: '800' }, {}), { allocatedResources: { iops: '800' } })
    const takenBack = asking(begun, {}).object
    expect(marksOf(takenBack)).toEqual({ storage: '1Gi' })
    const confirmed = told(takenBack, { allocatedResources: undefined, capacity: { storage: '1Gi', iops: '800' } })
    expect(marksOf(confirmed)).toEqual({ storage: '1Gi', iops: '800' })
  })

  it('PIO-7 a claim that never asked is not marked, whatever its volume provides', () => {
    const bound = told(aBoundClaim({}, {}), { capacity: { storage: '1Gi', iops: '5k' } })
    expect(marksOf(bound)).toEqual({ storage: '1Gi' })
    expect(marksOf(asking(bound, {}).object)).toEqual({ storage: '1Gi' })
  })

  it('PIO-7 do not make a claim one that can be shrunk while the gate for that is off', () => {
    const off = { gates: 'RecoverExpansionFailure=false' }
    const claim = aBoundClaim({ iops: '800' }, { iops: '800' })
    delete claim.spec?.allocatedResources
    const kept = asking(claim, {}, off).object
    expect(marksOf(kept)).toEqual({ iops: '800' })
    const { errors } = tryUpdate(kind, kept, (draft) => (draft.spec.resources.requests.storage = '512Mi'), off)
    expect(errors).toEqual(['spec.resources.requests.storage: Forbidden: field can not be less than previous value'])
  })
})
