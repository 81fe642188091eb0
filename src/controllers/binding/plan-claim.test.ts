import { describe, expect, it } from 'vitest'
import type { Stored } from '../../api/kind.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { aClaim, aVolume } from '../../volumes/claims-and-volumes.fixture.ts'
import { BIND_COMPLETED } from '../../volumes/names.ts'
import { type ClaimSituation, planClaim } from './plan-claim.ts'

const plan = (situation: Partial<ClaimSituation>) =>
  planClaim({
    claim: aClaim(),
    named: undefined,
    isLive: false,
    storageClass: undefined,
    defaultClass: () => undefined,
    choose: () => undefined,
    unscheduledPods: () => [],
    isInProcess: () => false,
    bindsAttributesClasses: true,
    ...situation,
  })
const aClass = (parts: object = {}): Stored<StorageClass> => ({
  metadata: { name: 'gold', uid: 'uid-gold', resourceVersion: '1' },
  provisioner: 'disk.example.com',
  volumeBindingMode: 'Immediate',
  ...parts,
})
const COMPLETED = { annotations: { [BIND_COMPLETED]: 'yes' }, spec: { volumeName: 'pv' } }

describe('planClaim', () => {
  it('PROV-5 marks a bound claim lost only when the server confirms that its volume does not exist', () => {
    const claim = aClaim(COMPLETED)
    expect(plan({ claim })).toEqual({ do: 'read its volume' })
    expect(plan({ claim, isLive: true })).toMatchObject({ do: 'mark lost', event: { reason: 'ClaimLost' } })
    const others = aVolume({ claim: { name: 'd', uid: 'uid-d' } })
    expect(plan({ claim, named: others })).toEqual({ do: 'read its volume' })
    expect(plan({ claim, named: others, isLive: true })).toMatchObject({ event: { reason: 'ClaimMisbound' } })
  })

  it('PROV-5 reports a claim whose volume has no uid in its claimRef, and rebinds one whose volume has no claimRef', () => {
    const claim = aClaim(COMPLETED)
    const reserved = aVolume({ claim: { name: 'c' } })
    expect(plan({ claim, named: reserved, isLive: true })).toMatchObject({ event: { reason: 'ClaimMisbound' } })
    const free = aVolume()
    expect(plan({ claim, named: free })).toEqual({ do: 'bind', volume: free })
  })

  it('PROV-4 does not bind a volume that is being deleted to the claim that names it', () => {
    const named = aVolume({ metadata: { deletionTimestamp: 'now' } })
    expect(plan({ claim: aClaim({ spec: { volumeName: 'pv' } }), named })).toMatchObject({
      do: 'wait',
      event: { message: 'Cannot bind to requested volume "pv": the volume is marked for deletion "pv"' },
    })
  })

  it('PROV-4 binds a volume that the claim names and that is reserved for it, regardless of its size', () => {
    const named = aVolume({ size: '1Mi', claim: { name: 'c' } })
    expect(plan({ claim: aClaim({ spec: { volumeName: 'pv' } }), named })).toEqual({ do: 'bind', volume: named })
  })

  it('PROV-3 assigns the default class only if the claim names no class and no volume fits', () => {
    const defaultClass = () => aClass()
    expect(plan({ defaultClass })).toEqual({ do: 'assign class', className: 'gold' })
    const fit = aVolume()
    expect(plan({ defaultClass, choose: () => fit })).toEqual({ do: 'bind', volume: fit })
    expect(plan({ defaultClass, claim: aClaim({ className: '' }) })).toMatchObject({ do: 'wait' })
    expect(plan({ defaultClass, claim: aClaim({ spec: { volumeName: 'pv' } }) })).toMatchObject({ do: 'wait' })
  })

  it('PROV-6 waits if the class has no binding mode', () => {
    const storageClass = aClass({ volumeBindingMode: undefined })
    expect(plan({ claim: aClaim({ className: 'gold' }), storageClass, choose: () => aVolume() })).toMatchObject({
      do: 'wait',
      because: 'VolumeBindingMode not set for StorageClass "gold"',
    })
  })

  it('PROV-7 sets Pending on a claim that waits for a pod, not on one that requests provisioning', () => {
    const claim = aClaim({ className: 'gold' })
    expect(plan({ claim, storageClass: aClass() })).not.toHaveProperty('phase')
    expect(plan({ claim, storageClass: aClass({ volumeBindingMode: 'WaitForFirstConsumer' }) })).toMatchObject({
      do: 'wait',
      phase: 'Pending',
    })
  })

  it('PROV-13 binds a claim being deleted only to the volume provisioned for it', () => {
    const claim = aClaim({ metadata: { deletionTimestamp: 'now' } })
    const calls: boolean[] = []
    const choose = ({ isDelayed }: { isDelayed: boolean }) => {
      calls.push(isDelayed)
      return undefined
    }
    expect(plan({ claim, choose, defaultClass: () => aClass() })).toEqual({
      do: 'wait',
      because: 'the claim is being deleted',
    })
    expect(calls).toEqual([true])
    const provisioned = aVolume({ claim: { name: 'c', uid: 'uid-c' } })
    expect(plan({ claim, choose: () => provisioned })).toEqual({ do: 'bind', volume: provisioned })
  })

  it('VAC-12 with the gate disabled, neither binds nor provisions for a claim with an attributes class', () => {
    const claim = aClaim({ spec: { volumeAttributesClassName: 'silver', storageClassName: 'gold' } })
    const off = { claim, bindsAttributesClasses: false, storageClass: aClass(), choose: () => aVolume() }
    expect(plan(off)).toMatchObject({
      do: 'wait',
      phase: 'Pending',
      event: {
        reason: 'VolumeMismatch',
        message: expect.stringContaining('not supported when the feature-gate VolumeAttributesClass is disabled'),
      },
    })
    expect(plan({ ...off, bindsAttributesClasses: true })).toMatchObject({ do: 'bind' })
    expect(plan({ ...off, claim: aClaim({ spec: { volumeAttributesClassName: '' } }) })).toMatchObject({ do: 'bind' })
  })

  it('VAC-12 with the gate disabled, keeps a bound claim bound', () => {
    const claim = aClaim({ ...COMPLETED, spec: { ...COMPLETED.spec, volumeAttributesClassName: 'silver' } })
    const named = aVolume({ claim: { name: 'c', uid: claim.metadata.uid! } })
    expect(plan({ claim, named, bindsAttributesClasses: false })).toMatchObject({ do: 'bind' })
  })
})
