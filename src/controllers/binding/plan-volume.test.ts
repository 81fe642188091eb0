import { describe, expect, it } from 'vitest'
import { aClaim, aVolume, type VolumeSample } from '../../volumes/claims-and-volumes.fixture.ts'
import { BOUND_BY_CONTROLLER, PROVISIONED_BY } from '../../volumes/names.ts'
import { planVolume, type VolumeSituation } from './plan-volume.ts'

const MINE = { claim: { name: 'c', uid: 'uid-c' } }
const plan = (sample: VolumeSample, situation: Partial<VolumeSituation> = {}) =>
  planVolume({
    volume: aVolume(sample),
    claim: undefined,
    isLive: false,
    inProcess: [],
    activePods: () => [],
    ...situation,
  })
const policy = (persistentVolumeReclaimPolicy?: string) => ({ spec: { persistentVolumeReclaimPolicy } })

describe('planVolume', () => {
  it('PROV-15 sets a free or reserved volume to Available from every phase', () => {
    for (const phase of ['Pending', 'Available', 'Released', 'Failed', 'Bound']) {
      expect(plan({ phase })).toEqual({ do: 'set phase', phase: 'Available' })
      expect(plan({ phase, claim: { name: 'c' } })).toEqual({ do: 'set phase', phase: 'Available' })
    }
  })

  it('PROV-5 releases a volume only when the server confirms that its claim is deleted', () => {
    expect(plan({ ...MINE, phase: 'Bound' })).toEqual({ do: 'read its claim' })
    expect(plan({ ...MINE, phase: 'Bound' }, { isLive: true })).toEqual({ do: 'set phase', phase: 'Released' })
    const namesake = aClaim({ uid: 'another' })
    expect(plan({ ...MINE, phase: 'Bound' }, { claim: namesake })).toEqual({ do: 'read its claim' })
    expect(plan({ ...MINE, phase: 'Bound' }, { claim: namesake, isLive: true })).toEqual({
      do: 'set phase',
      phase: 'Released',
    })
  })

  it('PROV-14 does not read the claim of a released volume again, except before reporting a failure', () => {
    for (const phase of ['Released', 'Failed']) {
      expect(plan({ ...MINE, phase, ...policy('Retain') })).toMatchObject({ do: 'reclaim', how: { is: 'delegated' } })
      expect(plan({ ...MINE, phase, ...policy('Delete') })).toEqual({ do: 'read its claim' })
      expect(plan({ ...MINE, phase, ...policy('Delete') }, { isLive: true })).toMatchObject({
        do: 'reclaim',
        how: { is: 'failed', event: { reason: 'VolumeFailedDelete' } },
      })
    }
  })

  it('PROV-14 binds a released volume to its claim again if the claim exists', () => {
    const claim = aClaim({ spec: { volumeName: 'pv' } })
    const released = { ...MINE, phase: 'Released', ...policy('Delete') }
    expect(plan(released, { claim, isLive: true })).toEqual({ do: 'set phase', phase: 'Bound' })
    expect(plan(released, { claim: aClaim(), isLive: true })).toMatchObject({ do: 'wait' })
  })

  it('PROV-14 reports an unknown reclaim policy', () => {
    expect(plan({ ...MINE, phase: 'Released', ...policy('Shred') }, { isLive: true })).toMatchObject({
      how: { is: 'failed', event: { type: 'Warning', reason: 'VolumeUnknownReclaimPolicy' } },
    })
  })

  it('PROV-13 reclaims, frees or keeps reserved a volume whose claim is bound to another one', () => {
    const claim = aClaim({ spec: { volumeName: 'other' } })
    const provisioned = { ...MINE, annotations: { [PROVISIONED_BY]: 'd.io' } }
    expect(plan({ ...provisioned, ...policy('Delete') }, { claim })).toEqual({ do: 'set phase', phase: 'Released' })
    expect(plan({ ...provisioned, phase: 'Released', ...policy('Delete') }, { claim })).toMatchObject({
      do: 'reclaim',
      how: { is: 'delegated', to: 'd.io' },
    })
    expect(plan({ ...provisioned, ...policy('Retain') }, { claim })).toEqual({ do: 'clear claimRef', keepsName: true })
    const ours = { ...MINE, annotations: { [BOUND_BY_CONTROLLER]: 'yes' } }
    expect(plan(ours, { claim })).toEqual({ do: 'clear claimRef', keepsName: false })
  })

  it('PROV-4 waits for the claim of a half-bound volume, and reports a mismatch of volume modes', () => {
    expect(plan(MINE, { claim: aClaim() })).toEqual({
      do: 'wait',
      because: 'claim default/c of its claimRef is not bound to it yet',
    })
    expect(plan(MINE, { claim: aClaim({ size: '2Gi' }) })).toEqual({
      do: 'wait',
      because: 'claim default/c of its claimRef cannot be bound to it: requested PV is too small',
    })
    const claim = aClaim({ spec: { volumeMode: 'Block' } })
    expect(plan(MINE, { claim })).toMatchObject({
      do: 'report mismatch',
      because: 'claim default/c of its claimRef requests volumeMode Block, and the volume has Filesystem',
    })
  })

  it('PROV-13 releases a volume that was deleted before it was bound, but not a half-bound one', () => {
    const deleted = { ...MINE, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }
    expect(plan({ ...deleted, phase: 'Pending' }, { claim: aClaim() })).toEqual({ do: 'read its claim' })
    const live = { claim: aClaim(), isLive: true }
    expect(plan({ ...deleted, phase: 'Pending' }, live)).toEqual({ do: 'set phase', phase: 'Released' })
    expect(plan({ ...deleted, phase: 'Released', ...policy('Retain') }, live)).toMatchObject({ do: 'reclaim' })
    expect(plan({ ...deleted, phase: 'Bound' }, live)).toMatchObject({ do: 'wait' })
  })

  it('PROV-14 does not recycle a volume while pods use it', () => {
    const recycled = { ...MINE, phase: 'Released', ...policy('Recycle') }
    expect(plan(recycled, { isLive: true, activePods: () => ['default/p'] })).toMatchObject({
      how: { is: 'blocked', event: { type: 'Normal', message: 'Volume is used by pods: default/p' } },
    })
  })
})
