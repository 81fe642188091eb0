import { describe, expect, it } from 'vitest'
import { aClaim, aVolume } from '../../volumes/claims-and-volumes.fixture.ts'
import { BIND_COMPLETED } from '../../volumes/names.ts'
import { type ClaimSituation, planClaim } from './plan-claim.ts'

const plan = (situation: Partial<ClaimSituation>) =>
  planClaim({
    claim: aClaim(),
    named: undefined,
    isSure: false,
    storageClass: undefined,
    defaultClass: () => undefined,
    choose: () => undefined,
    unscheduledPods: () => [],
    isInProcess: () => false,
    bindsAttributesClasses: true,
    ...situation,
  })
const aClass = (parts: object = {}): any => ({
  metadata: { name: 'gold' },
  provisioner: 'disk.example.com',
  volumeBindingMode: 'Immediate',
  ...parts,
})
const COMPLETED = { annotations: { [BIND_COMPLETED]: 'yes' }, spec: { volumeName: 'pv' } }

describe('the plan for a claim', () => {
  it('PROV-5 a bound claim is believed to have lost its volume only when the server says so', () => {
    const claim = aClaim(COMPLETED)
    expect(plan({ claim })).toEqual({ do: 'read its volume' })
    expect(plan({ claim, isSure: true })).toMatchObject({ do: 'give up', tell: { reason: 'ClaimLost' } })
    const others = aVolume({ claim: { name: 'd', uid: 'uid-d' } })
    expect(plan({ claim, named: others })).toEqual({ do: 'read its volume' })
    expect(plan({ claim, named: others, isSure: true })).toMatchObject({ tell: { reason: 'ClaimMisbound' } })
  })

  it('PROV-5 a bound claim whose volume is reserved by name only is misbound, and one whose volume is free is bound again', () => {
    const claim = aClaim(COMPLETED)
    const reserved = aVolume({ claim: { name: 'c' } })
    expect(plan({ claim, named: reserved, isSure: true })).toMatchObject({ tell: { reason: 'ClaimMisbound' } })
    const free = aVolume()
    expect(plan({ claim, named: free })).toEqual({ do: 'bind', volume: free })
  })

  it('PROV-4 a volume that is going is not bound to the claim that names it', () => {
    const named = aVolume({ metadata: { deletionTimestamp: 'now' } })
    expect(plan({ claim: aClaim({ spec: { volumeName: 'pv' } }), named })).toMatchObject({
      do: 'wait',
      tell: { message: 'Cannot bind to requested volume "pv": the volume is marked for deletion "pv"' },
    })
  })

  it('PROV-4 a claim that names a volume reserved for it gets it, whatever the volume is like', () => {
    const named = aVolume({ size: '1Mi', claim: { name: 'c' } })
    expect(plan({ claim: aClaim({ spec: { volumeName: 'pv' } }), named })).toEqual({ do: 'bind', volume: named })
  })

  it('PROV-3 the default class is asked for only where nothing is named and nothing fits', () => {
    const defaultClass = () => aClass()
    expect(plan({ defaultClass })).toEqual({ do: 'assign class', className: 'gold' })
    const fit = aVolume()
    expect(plan({ defaultClass, choose: () => fit })).toEqual({ do: 'bind', volume: fit })
    expect(plan({ defaultClass, claim: aClaim({ className: '' }) })).toMatchObject({ do: 'wait' })
    expect(plan({ defaultClass, claim: aClaim({ spec: { volumeName: 'pv' } }) })).toMatchObject({ do: 'wait' })
  })

  it('PROV-6 a class without a binding mode is no class to act on', () => {
    const storageClass = aClass({ volumeBindingMode: undefined })
    expect(plan({ claim: aClaim({ className: 'gold' }), storageClass, choose: () => aVolume() })).toMatchObject({
      do: 'wait',
      because: 'VolumeBindingMode not set for StorageClass "gold"',
    })
  })

  it('PROV-7 the status of a claim that asks for a volume is left alone; that of one that waits for a pod is not', () => {
    const claim = aClaim({ className: 'gold' })
    expect(plan({ claim, storageClass: aClass() })).not.toHaveProperty('phase')
    expect(plan({ claim, storageClass: aClass({ volumeBindingMode: 'WaitForFirstConsumer' }) })).toMatchObject({
      do: 'wait',
      phase: 'Pending',
    })
  })

  it('PROV-13 of a claim that is going, only what was made for it is still bound', () => {
    const claim = aClaim({ metadata: { deletionTimestamp: 'now' } })
    const asked: boolean[] = []
    const choose = ({ isDelayed }: { isDelayed: boolean }) => {
      asked.push(isDelayed)
      return undefined
    }
    expect(plan({ claim, choose, defaultClass: () => aClass() })).toEqual({
      do: 'wait',
      because: 'it is being deleted',
    })
    expect(asked).toEqual([true])
    const made = aVolume({ claim: { name: 'c', uid: 'uid-c' } })
    expect(plan({ claim, choose: () => made })).toEqual({ do: 'bind', volume: made })
  })

  it('VAC-12 with the gate off a claim that names an attributes class is not bound, and nothing is made for it', () => {
    const claim = aClaim({ spec: { volumeAttributesClassName: 'silver', storageClassName: 'gold' } })
    const off = { claim, bindsAttributesClasses: false, storageClass: aClass(), choose: () => aVolume() }
    expect(plan(off)).toMatchObject({
      do: 'wait',
      phase: 'Pending',
      tell: {
        reason: 'VolumeMismatch',
        message: expect.stringContaining('not supported when the feature-gate VolumeAttributesClass is disabled'),
      },
    })
    expect(plan({ ...off, bindsAttributesClasses: true })).toMatchObject({ do: 'bind' })
    expect(plan({ ...off, claim: aClaim({ spec: { volumeAttributesClassName: '' } }) })).toMatchObject({ do: 'bind' })
  })

  it('VAC-12 with the gate off a claim that is bound stays bound', () => {
    const claim = aClaim({ ...COMPLETED, spec: { ...COMPLETED.spec, volumeAttributesClassName: 'silver' } })
    const named = aVolume({ claim: { name: 'c', uid: claim.metadata.uid! } })
    expect(plan({ claim, named, bindsAttributesClasses: false })).toMatchObject({ do: 'bind' })
  })
})
