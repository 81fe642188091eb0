import { describe, expect, it } from 'vitest'
import { aClaim, aVolume, type VolumeSample } from '../../volumes/claims-and-volumes.fixture.ts'
import { BOUND_BY_CONTROLLER, PROVISIONED_BY } from '../../volumes/names.ts'
import { planVolume, type VolumeSituation } from './plan-volume.ts'

const MINE = { claim: { name: 'c', uid: 'uid-c' } }
const plan = (sample: VolumeSample, situation: Partial<VolumeSituation> = {}) =>
  planVolume({
    volume: aVolume(sample),
    claim: undefined,
    isSure: false,
    inProcess: [],
    activePods: () => [],
    ...situation,
  })
const policy = (persistentVolumeReclaimPolicy?: string) => ({ spec: { persistentVolumeReclaimPolicy } })

describe('the plan for a volume', () => {
  it('PROV-15 a volume that is nobody’s, or reserved by name, is available from whatever phase', () => {
    for (const phase of ['Pending', 'Available', 'Released', 'Failed', 'Bound']) {
      expect(plan({ phase })).toEqual({ do: 'set phase', phase: 'Available' })
      expect(plan({ phase, claim: { name: 'c' } })).toEqual({ do: 'set phase', phase: 'Available' })
    }
  })

  it('PROV-5 a claim is believed to be gone only when the server says so', () => {
    expect(plan({ ...MINE, phase: 'Bound' })).toEqual({ do: 'read its claim' })
    expect(plan({ ...MINE, phase: 'Bound' }, { isSure: true })).toEqual({ do: 'set phase', phase: 'Released' })
    const namesake = aClaim({ uid: 'another' })
    expect(plan({ ...MINE, phase: 'Bound' }, { claim: namesake })).toEqual({ do: 'read its claim' })
    expect(plan({ ...MINE, phase: 'Bound' }, { claim: namesake, isSure: true })).toEqual({
      do: 'set phase',
      phase: 'Released',
    })
  })

  it('PROV-14 a volume that was released once is not looked up again, unless something is to be declared failed', () => {
    for (const phase of ['Released', 'Failed']) {
      expect(plan({ ...MINE, phase, ...policy('Retain') })).toMatchObject({ do: 'reclaim', how: { is: 'left' } })
      expect(plan({ ...MINE, phase, ...policy('Delete') })).toEqual({ do: 'read its claim' })
      expect(plan({ ...MINE, phase, ...policy('Delete') }, { isSure: true })).toMatchObject({
        do: 'reclaim',
        how: { is: 'impossible', tell: { reason: 'VolumeFailedDelete' } },
      })
    }
  })

  it('PROV-14 a claim that has come back keeps its volume', () => {
    const claim = aClaim({ spec: { volumeName: 'pv' } })
    const released = { ...MINE, phase: 'Released', ...policy('Delete') }
    expect(plan(released, { claim, isSure: true })).toEqual({ do: 'set phase', phase: 'Bound' })
    expect(plan(released, { claim: aClaim(), isSure: true })).toMatchObject({ do: 'wait' })
  })

  it('PROV-14 a policy that nobody knows is told', () => {
    expect(plan({ ...MINE, phase: 'Released', ...policy('Shred') }, { isSure: true })).toMatchObject({
      how: { is: 'impossible', tell: { type: 'Warning', reason: 'VolumeUnknownReclaimPolicy' } },
    })
  })

  it('PROV-13 what a claim with another volume leaves behind: deleted, free for anyone, or reserved as before', () => {
    const claim = aClaim({ spec: { volumeName: 'other' } })
    const made = { ...MINE, annotations: { [PROVISIONED_BY]: 'd.io' } }
    expect(plan({ ...made, ...policy('Delete') }, { claim })).toEqual({ do: 'set phase', phase: 'Released' })
    expect(plan({ ...made, phase: 'Released', ...policy('Delete') }, { claim })).toMatchObject({
      do: 'reclaim',
      how: { is: 'left', to: 'd.io' },
    })
    expect(plan({ ...made, ...policy('Retain') }, { claim })).toEqual({ do: 'give back', keepsName: true })
    const ours = { ...MINE, annotations: { [BOUND_BY_CONTROLLER]: 'yes' } }
    expect(plan(ours, { claim })).toEqual({ do: 'give back', keepsName: false })
  })

  it('PROV-4 a volume whose claim does not know of it yet waits for the claim, unless their modes differ', () => {
    expect(plan(MINE, { claim: aClaim() })).toEqual({
      do: 'wait',
      because: 'it belongs to the claim default/c, which is yet to be bound to it',
    })
    expect(plan(MINE, { claim: aClaim({ size: '2Gi' }) })).toEqual({
      do: 'wait',
      because: 'it belongs to the claim default/c, which cannot be bound to it: requested PV is too small',
    })
    const claim = aClaim({ spec: { volumeMode: 'Block' } })
    expect(plan(MINE, { claim })).toMatchObject({
      do: 'tell of mismatch',
      because: 'the claim default/c that it belongs to wants volumeMode Block, and it is Filesystem',
    })
  })

  it('PROV-13 a volume that was deleted before its claim took it is released; one that is half bound is not', () => {
    const going = { ...MINE, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }
    expect(plan({ ...going, phase: 'Pending' }, { claim: aClaim() })).toEqual({ do: 'read its claim' })
    const sure = { claim: aClaim(), isSure: true }
    expect(plan({ ...going, phase: 'Pending' }, sure)).toEqual({ do: 'set phase', phase: 'Released' })
    expect(plan({ ...going, phase: 'Released', ...policy('Retain') }, sure)).toMatchObject({ do: 'reclaim' })
    expect(plan({ ...going, phase: 'Bound' }, sure)).toMatchObject({ do: 'wait' })
  })

  it('PROV-14 pods hold a volume that is to be recycled', () => {
    const recycled = { ...MINE, phase: 'Released', ...policy('Recycle') }
    expect(plan(recycled, { isSure: true, activePods: () => ['default/p'] })).toMatchObject({
      how: { is: 'held', tell: { type: 'Normal', message: 'Volume is used by pods: default/p' } },
    })
  })
})
