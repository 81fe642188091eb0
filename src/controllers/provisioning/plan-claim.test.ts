import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { PROVISIONED_BY, PROVISIONER } from '../../volumes/names.ts'
import type { Stage } from './attempts.ts'
import { type ClaimSituation, planClaim, requestOf } from './plan-claim.ts'

const PROVISIONER_NAME = 'disks.example.com'
const CLASS = { metadata: { name: 'fast', uid: 'c1' }, provisioner: PROVISIONER_NAME }

const aSituation = (overrides: Partial<ClaimSituation> = {}): ClaimSituation => ({
  provisionerName: PROVISIONER_NAME,
  intentFinalizer: `provisioning.stowage.dev/${PROVISIONER_NAME}`,
  claim: {
    metadata: {
      namespace: 'shop',
      name: 'data',
      uid: 'u1',
      resourceVersion: '1',
      annotations: { [PROVISIONER]: PROVISIONER_NAME },
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
  ...overrides,
})
const aVolume = (provisionedBy: string, uid: string): PersistentVolume => ({
  metadata: { name: 'pvc-u1', annotations: { [PROVISIONED_BY]: provisionedBy } },
  spec: { claimRef: { namespace: 'shop', name: 'data', uid } },
})
const CREATED = { volume: aVolume(PROVISIONER_NAME, 'u1'), retries: 1 }
const claims = fc
  .record({
    provisioner: fc.constantFrom(PROVISIONER_NAME, 'other.io'),
    isDeleted: fc.boolean(),
    volumeName: fc.constantFrom('', 'pv'),
  })
  .map(({ provisioner, isDeleted, volumeName }) => ({
    metadata: {
      namespace: 'shop',
      name: 'data',
      uid: 'u1',
      resourceVersion: '1',
      annotations: { [PROVISIONER]: provisioner },
      ...(isDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { storageClassName: 'fast', volumeName },
  }))
const stages: fc.Arbitrary<Stage> = fc.constantFrom<Stage>(
  { is: 'nothing' },
  { is: 'unknown' },
  { is: 'unknown', request: requestOf(aSituation().claim, CLASS, 'pvc-u1') },
  { is: 'unsaved', ...CREATED, rejections: 0, notBeforeMs: 0 },
  { is: 'unsaved', ...CREATED, rejections: 0, notBeforeMs: 2_000 },
  { is: 'unwanted', ...CREATED, message: 'too small', notBeforeMs: 0 },
  { is: 'saved', resourceVersion: '7' },
)
const situations: fc.Arbitrary<ClaimSituation> = fc
  .record({
    claim: claims,
    holdsIntent: fc.boolean(),
    stage: stages,
    storageClass: fc.constantFrom(CLASS, { ...CLASS, provisioner: 'other.io' }, undefined),
    volume: fc.constantFrom(
      undefined,
      aVolume(PROVISIONER_NAME, 'u1'),
      aVolume('other.io', 'u1'),
      aVolume(PROVISIONER_NAME, 'u2'),
    ),
  })
  .map(aSituation)

describe('planClaim', () => {
  it('PROV-12 never removes the intent while a volume without a PV may exist', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        if (planClaim(situation).do !== 'releaseIntent') return
        const { stage, volume } = situation
        const hasOwnVolume =
          volume?.spec?.claimRef?.uid === 'u1' && volume.metadata.annotations?.[PROVISIONED_BY] === PROVISIONER_NAME
        expect(stage.is === 'nothing' || stage.is === 'saved' || (stage.is === 'unknown' && hasOwnVolume)).toBe(true)
      }),
    )
  })

  it('PROV-9 does not start to provision a claim that is being deleted, has a volume or belongs to another provisioner', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const plan = planClaim(situation)
        if (plan.do !== 'provision' || situation.stage.is !== 'nothing') return
        expect(situation.claim.metadata.deletionTimestamp).toBeUndefined()
        expect(situation.claim.spec?.volumeName).toBe('')
        expect(situation.claim.metadata.annotations?.[PROVISIONER]).toBe(PROVISIONER_NAME)
        expect(situation.volume).toBeUndefined()
        expect(plan.request.storageClass.provisioner).toBe(PROVISIONER_NAME)
      }),
    )
  })

  it('PROV-13 always plans a step or a wait with a reason for a volume that may exist', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const plan = planClaim(situation)
        if (situation.stage.is === 'nothing' || situation.stage.is === 'saved' || situation.volume) return
        expect(['provision', 'save', 'cleanUp', 'wait']).toContain(plan.do)
        if (plan.do === 'wait') expect(plan.message).not.toBe('')
      }),
    )
  })

  it('PROV-12 waits until the next attempt is due', () => {
    const stage: Stage = { is: 'unsaved', ...CREATED, rejections: 0, notBeforeMs: 2_000 }
    expect(planClaim(aSituation({ stage, nowMs: 1_500 }))).toMatchObject({ do: 'wait', afterMs: 500 })
    expect(planClaim(aSituation({ stage, nowMs: 2_000 })).do).toBe('save')
  })

  it('PROV-10 delays an infeasible request unless the class is replaced', () => {
    const infeasible = { untilMs: 5_000, classUid: 'c1', message: 'bad' }
    expect(planClaim(aSituation({ infeasible }))).toEqual({ do: 'wait', message: 'bad', afterMs: 4_000 })
    const storageClass = { ...CLASS, metadata: { name: 'fast', uid: 'c2' } }
    expect(planClaim(aSituation({ infeasible, storageClass })).do).toBe('provision')
  })
})
