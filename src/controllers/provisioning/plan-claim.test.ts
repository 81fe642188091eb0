import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { PROVISIONED_BY, PROVISIONER } from '../../volumes/names.ts'
import type { Stage } from './attempts.ts'
import { type ClaimSituation, planClaim, requestOf } from './plan-claim.ts'
import { inUseReason, planVolume } from './plan-volume.ts'

const OURS = 'disks.example.com'
const CLASS = { metadata: { name: 'fast', uid: 'c1' }, provisioner: OURS }

const aSituation = (more: Partial<ClaimSituation> = {}): ClaimSituation => ({
  provisionerName: OURS,
  intent: `provisioning.stowage.dev/${OURS}`,
  claim: {
    metadata: {
      namespace: 'shop',
      name: 'data',
      uid: 'u1',
      resourceVersion: '1',
      annotations: { [PROVISIONER]: OURS },
    },
    spec: { storageClassName: 'fast' },
  },
  holdsIntent: false,
  stage: { is: 'nothing' },
  infeasible: undefined,
  storageClass: CLASS,
  volumeName: 'pvc-u1',
  volume: undefined,
  nowMs: 1_000,
  ...more,
})
const aVolume = (by: string, uid: string): PersistentVolume => ({
  metadata: { name: 'pvc-u1', annotations: { [PROVISIONED_BY]: by } },
  spec: { claimRef: { namespace: 'shop', name: 'data', uid } },
})
const created = { volume: aVolume(OURS, 'u1'), tries: 1 }
const claims = fc
  .record({ asked: fc.constantFrom(OURS, 'other.io'), isDeleted: fc.boolean(), volumeName: fc.constantFrom('', 'pv') })
  .map(({ asked, isDeleted, volumeName }) => ({
    metadata: {
      namespace: 'shop',
      name: 'data',
      uid: 'u1',
      resourceVersion: '1',
      annotations: { [PROVISIONER]: asked },
      ...(isDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { storageClassName: 'fast', volumeName },
  }))
const stages: fc.Arbitrary<Stage> = fc.constantFrom<Stage>(
  { is: 'nothing' },
  { is: 'unknown' },
  { is: 'unknown', request: requestOf(aSituation().claim, CLASS, 'pvc-u1') },
  { is: 'unsaved', ...created, rejections: 0, notBeforeMs: 0 },
  { is: 'unsaved', ...created, rejections: 0, notBeforeMs: 2_000 },
  { is: 'unwanted', ...created, because: 'too small', notBeforeMs: 0 },
  { is: 'saved', resourceVersion: '7' },
)
const situations: fc.Arbitrary<ClaimSituation> = fc
  .record({
    claim: claims,
    holdsIntent: fc.boolean(),
    stage: stages,
    storageClass: fc.constantFrom(CLASS, { ...CLASS, provisioner: 'other.io' }, undefined),
    volume: fc.constantFrom(undefined, aVolume(OURS, 'u1'), aVolume('other.io', 'u1'), aVolume(OURS, 'u2')),
  })
  .map(aSituation)

describe('planClaim', () => {
  it('PROV-12 never removes the intent while a volume without a PV may exist', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        if (planClaim(situation).do !== 'releaseIntent') return
        const { stage, volume } = situation
        const isAccountedFor =
          volume?.spec?.claimRef?.uid === 'u1' && volume.metadata.annotations?.[PROVISIONED_BY] === OURS
        expect(stage.is === 'nothing' || stage.is === 'saved' || (stage.is === 'unknown' && isAccountedFor)).toBe(true)
      }),
    )
  })

  it('PROV-9 never starts for a claim that is being deleted, has a volume or is for another provisioner', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const plan = planClaim(situation)
        if (plan.do !== 'provision' || situation.stage.is !== 'nothing') return
        expect(situation.claim.metadata.deletionTimestamp).toBeUndefined()
        expect(situation.claim.spec?.volumeName).toBe('')
        expect(situation.claim.metadata.annotations?.[PROVISIONER]).toBe(OURS)
        expect(situation.volume).toBeUndefined()
        expect(plan.request.storageClass.provisioner).toBe(OURS)
      }),
    )
  })

  it('PROV-13 always has a next step, or a reason to wait, for a volume that may exist', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const plan = planClaim(situation)
        if (situation.stage.is === 'nothing' || situation.stage.is === 'saved' || situation.volume) return
        expect(['provision', 'save', 'cleanUp', 'wait']).toContain(plan.do)
        if (plan.do === 'wait') expect(plan.because).not.toBe('')
      }),
    )
  })

  it('PROV-12 waits exactly until the next try is due', () => {
    const stage: Stage = { is: 'unsaved', ...created, rejections: 0, notBeforeMs: 2_000 }
    expect(planClaim(aSituation({ stage, nowMs: 1_500 }))).toMatchObject({ do: 'wait', afterMs: 500 })
    expect(planClaim(aSituation({ stage, nowMs: 2_000 })).do).toBe('save')
  })

  it('PROV-10 delays an infeasible request, but not with a replaced class', () => {
    const infeasible = { untilMs: 5_000, classUid: 'c1', because: 'bad' }
    expect(planClaim(aSituation({ infeasible }))).toEqual({ do: 'wait', because: 'bad', afterMs: 4_000 })
    const storageClass = { ...CLASS, metadata: { name: 'fast', uid: 'c2' } }
    expect(planClaim(aSituation({ infeasible, storageClass })).do).toBe('provision')
  })
})

describe('planVolume', () => {
  const policies = ['Delete', 'Retain', 'Recycle'] as const
  const phases = ['Pending', 'Available', 'Bound', 'Released', 'Failed'] as const
  const volumes = fc
    .record({
      by: fc.constantFrom(OURS, 'other.io', ''),
      policy: fc.constantFrom(...policies),
      phase: fc.constantFrom(...phases),
      isHeld: fc.boolean(),
      isDeleted: fc.boolean(),
    })
    .map(({ by, policy, phase, isHeld, isDeleted }) => ({
      metadata: {
        name: 'pv',
        annotations: { [PROVISIONED_BY]: by },
        finalizers: isHeld ? ['held'] : [],
        ...(isDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
      },
      spec: { persistentVolumeReclaimPolicy: policy, claimRef: { name: 'data', namespace: 'shop', uid: 'u1' } },
      status: { phase },
    }))

  it('PROV-14 deletes only our volumes with policy Delete that are released, or freed and deleted by a user', () => {
    fc.assert(
      fc.property(volumes, fc.boolean(), (volume, owns) => {
        const plan = planVolume(volume, { name: OURS, owns: () => owns }, 'held')
        const by = volume.metadata.annotations[PROVISIONED_BY]
        const isOurs = by === OURS || (by === '' && owns)
        if (!isOurs) expect(plan.do).toBe('nothing')
        if (plan.do === 'delete') {
          const isGivenBack = volume.status.phase === 'Available' && volume.metadata.deletionTimestamp !== undefined
          expect(volume.status.phase === 'Released' || isGivenBack).toBe(true)
          expect(volume.spec.persistentVolumeReclaimPolicy).toBe('Delete')
        }
        if (plan.do === 'addFinalizer') expect(volume.metadata.deletionTimestamp).toBeUndefined()
      }),
      { numRuns: 1_000 }, // there are 180 of them
    )
  })

  it('PROV-14 keeps a volume whose claimRef has no uid while a claim of that name exists', () => {
    const volume = { metadata: { name: 'pv' }, spec: { claimRef: { namespace: 'shop', name: 'data' } } }
    const claim = { metadata: { namespace: 'shop', name: 'data', uid: 'u9' }, spec: {} }
    expect(inUseReason(volume, claim)).toContain('"shop/data"')
    expect(inUseReason(volume, undefined)).toBeUndefined()
  })
})
