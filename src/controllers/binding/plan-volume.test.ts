import { describe, expect, it } from 'vitest'
import { aClaim, aVolume, type VolumeSample } from '../../volumes/claims-and-volumes.fixture.ts'
import { BOUND_BY_CONTROLLER, PROVISIONED_BY } from '../../volumes/names.ts'
import { planVolume, type VolumeSituation } from './plan-volume.ts'

const CLAIM_REF = { claim: { name: 'c', uid: 'uid-c' } }
const plan = (sample: VolumeSample, situation: Partial<VolumeSituation> = {}) =>
  planVolume({
    volume: aVolume(sample),
    claim: undefined,
    isLive: false,
    inProcessProvisioners: [],
    activePods: () => [],
    ...situation,
  })
const policy = (persistentVolumeReclaimPolicy?: string) => ({ spec: { persistentVolumeReclaimPolicy } })

describe('planVolume', () => {
  it('sets a free or reserved volume to Available from every phase', () => {
    for (const phase of ['Pending', 'Available', 'Released', 'Failed', 'Bound']) {
      expect(plan({ phase })).toEqual({ do: 'set phase', phase: 'Available' })
      expect(plan({ phase, claim: { name: 'c' } })).toEqual({ do: 'set phase', phase: 'Available' })
    }
  })

  it('PROV-5 releases a volume only when the server confirms that its claim is deleted', () => {
    expect(plan({ ...CLAIM_REF, phase: 'Bound' })).toEqual({ do: 'read claim' })
    expect(plan({ ...CLAIM_REF, phase: 'Bound' }, { isLive: true })).toEqual({ do: 'set phase', phase: 'Released' })
    const recreatedClaim = aClaim({ uid: 'another' })
    expect(plan({ ...CLAIM_REF, phase: 'Bound' }, { claim: recreatedClaim })).toEqual({ do: 'read claim' })
    expect(plan({ ...CLAIM_REF, phase: 'Bound' }, { claim: recreatedClaim, isLive: true })).toEqual({
      do: 'set phase',
      phase: 'Released',
    })
  })

  it('PROV-14 reads the claim of a released volume only before it reports a failure', () => {
    for (const phase of ['Released', 'Failed']) {
      expect(plan({ ...CLAIM_REF, phase, ...policy('Retain') })).toMatchObject({
        do: 'reclaim',
        reclaim: { is: 'delegated' },
      })
      expect(plan({ ...CLAIM_REF, phase, ...policy('Delete') })).toEqual({ do: 'read claim' })
      expect(plan({ ...CLAIM_REF, phase, ...policy('Delete') }, { isLive: true })).toMatchObject({
        do: 'reclaim',
        reclaim: { is: 'failed', event: { reason: 'VolumeFailedDelete' } },
      })
    }
  })

  it('sets a released volume to Bound if its claim exists and names it', () => {
    const claim = aClaim({ spec: { volumeName: 'pv' } })
    const releasedVolume = { ...CLAIM_REF, phase: 'Released', ...policy('Delete') }
    expect(plan(releasedVolume, { claim, isLive: true })).toEqual({ do: 'set phase', phase: 'Bound' })
    expect(plan(releasedVolume, { claim: aClaim(), isLive: true })).toMatchObject({ do: 'wait' })
  })

  it('PROV-14 reports an unknown reclaim policy', () => {
    expect(plan({ ...CLAIM_REF, phase: 'Released', ...policy('Shred') }, { isLive: true })).toMatchObject({
      reclaim: { is: 'failed', event: { type: 'Warning', reason: 'VolumeUnknownReclaimPolicy' } },
    })
  })

  it('PROV-13 reclaims a provisioned volume with the policy Delete whose claim is bound to another volume', () => {
    const claim = aClaim({ spec: { volumeName: 'other' } })
    const provisionedVolume = { ...CLAIM_REF, annotations: { [PROVISIONED_BY]: 'd.io' } }
    expect(plan({ ...provisionedVolume, ...policy('Delete') }, { claim })).toEqual({
      do: 'set phase',
      phase: 'Released',
    })
    expect(plan({ ...provisionedVolume, phase: 'Released', ...policy('Delete') }, { claim })).toMatchObject({
      do: 'reclaim',
      reclaim: { is: 'delegated', provisioner: 'd.io' },
    })
  })

  it('PROV-13 clears the claimRef of a retained or statically created volume whose claim is bound to another volume', () => {
    const claim = aClaim({ spec: { volumeName: 'other' } })
    const provisionedVolume = { ...CLAIM_REF, annotations: { [PROVISIONED_BY]: 'd.io' } }
    expect(plan({ ...provisionedVolume, ...policy('Retain') }, { claim })).toEqual({
      do: 'clear claimRef',
      keepsName: true,
    })
    const boundByController = { ...CLAIM_REF, annotations: { [BOUND_BY_CONTROLLER]: 'yes' } }
    expect(plan(boundByController, { claim })).toEqual({ do: 'clear claimRef', keepsName: false })
  })

  it('PROV-4 waits for the claim of a half-bound volume, and reports a mismatch of volume modes', () => {
    expect(plan(CLAIM_REF, { claim: aClaim() })).toEqual({
      do: 'wait',
      message: 'claim default/c, named in claimRef, is not bound to the volume yet',
    })
    expect(plan(CLAIM_REF, { claim: aClaim({ size: '2Gi' }) })).toEqual({
      do: 'wait',
      message: 'claim default/c, named in claimRef, cannot be bound to the volume: requested PV is too small',
    })
    const claim = aClaim({ spec: { volumeMode: 'Block' } })
    expect(plan(CLAIM_REF, { claim })).toMatchObject({
      do: 'report mismatch',
      message: 'claim default/c, named in claimRef, requests volumeMode Block, but the volume has Filesystem',
    })
  })

  it('PROV-13 releases a deleted volume whose phase is not Bound yet, and waits if it is Bound', () => {
    const deletedVolume = { ...CLAIM_REF, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }
    expect(plan({ ...deletedVolume, phase: 'Pending' }, { claim: aClaim() })).toEqual({ do: 'read claim' })
    const liveClaim = { claim: aClaim(), isLive: true }
    expect(plan({ ...deletedVolume, phase: 'Pending' }, liveClaim)).toEqual({ do: 'set phase', phase: 'Released' })
    expect(plan({ ...deletedVolume, phase: 'Released', ...policy('Retain') }, liveClaim)).toMatchObject({
      do: 'reclaim',
    })
    expect(plan({ ...deletedVolume, phase: 'Bound' }, liveClaim)).toMatchObject({ do: 'wait' })
  })

  it('PROV-14 does not recycle a volume while pods use it', () => {
    const recycledVolume = { ...CLAIM_REF, phase: 'Released', ...policy('Recycle') }
    expect(plan(recycledVolume, { isLive: true, activePods: () => ['default/p'] })).toMatchObject({
      reclaim: { is: 'blocked', event: { type: 'Normal', message: 'Volume is used by pods: default/p' } },
    })
  })
})
