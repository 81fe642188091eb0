import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PROVISIONED_BY } from '../../volumes/names.ts'
import { inUseReason, planVolume } from './plan-volume.ts'

const PROVISIONER_NAME = 'disks.example.com'

describe('planVolume', () => {
  const policies = ['Delete', 'Retain', 'Recycle'] as const
  const phases = ['Pending', 'Available', 'Bound', 'Released', 'Failed'] as const
  const volumes = fc
    .record({
      provisionedBy: fc.constantFrom(PROVISIONER_NAME, 'other.io', ''),
      policy: fc.constantFrom(...policies),
      phase: fc.constantFrom(...phases),
      hasFinalizer: fc.boolean(),
      isBeingDeleted: fc.boolean(),
    })
    .map(({ provisionedBy, policy, phase, hasFinalizer, isBeingDeleted }) => ({
      metadata: {
        name: 'pv',
        annotations: { [PROVISIONED_BY]: provisionedBy },
        finalizers: hasFinalizer ? ['held'] : [],
        ...(isBeingDeleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
      },
      spec: { persistentVolumeReclaimPolicy: policy, claimRef: { name: 'data', namespace: 'shop', uid: 'u1' } },
      status: { phase },
    }))

  it('PROV-14 deletes only its own volumes with the policy Delete that are Released, or Available and being deleted', () => {
    fc.assert(
      fc.property(volumes, fc.boolean(), (volume, owns) => {
        const plan = planVolume(volume, { name: PROVISIONER_NAME, owns: () => owns }, 'held')
        const provisionedBy = volume.metadata.annotations[PROVISIONED_BY]
        const isOwn = provisionedBy === PROVISIONER_NAME || (provisionedBy === '' && owns)
        if (!isOwn) expect(plan.do).toBe('nothing')
        if (plan.do === 'delete') {
          const isAvailableAndBeingDeleted =
            volume.status.phase === 'Available' && volume.metadata.deletionTimestamp !== undefined
          expect(volume.status.phase === 'Released' || isAvailableAndBeingDeleted).toBe(true)
          expect(volume.spec.persistentVolumeReclaimPolicy).toBe('Delete')
        }
        if (plan.do === 'addFinalizer') expect(volume.metadata.deletionTimestamp).toBeUndefined()
      }),
      { numRuns: 1_000 }, // enough to cover most of the 360 combinations
    )
  })
})

describe('inUseReason', () => {
  it('PROV-14 returns a reason for a claimRef without a uid while a claim of that name exists', () => {
    const volume = { metadata: { name: 'pv' }, spec: { claimRef: { namespace: 'shop', name: 'data' } } }
    const claim = { metadata: { namespace: 'shop', name: 'data', uid: 'u9' }, spec: {} }
    expect(inUseReason(volume, claim)).toContain('"shop/data"')
    expect(inUseReason(volume, undefined)).toBeUndefined()
  })
})
