import { describe, expect, it } from 'vitest'
import type { Stored } from '../../api/kind.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { aClaim, aVolume } from '../../volumes/claims-and-volumes.fixture.ts'
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from '../../volumes/names.ts'
import { type ClaimSituation, planClaim } from './plan-claim.ts'

const plan = (situation: Partial<ClaimSituation>) =>
  planClaim({
    claim: aClaim(),
    namedVolume: undefined,
    isLive: false,
    storageClass: undefined,
    defaultClass: () => undefined,
    findVolume: () => undefined,
    unscheduledPods: () => [],
    isInProcess: () => false,
    isAttributesClassEnabled: true,
    isProvisionedIoEnabled: true,
    ...situation,
  })
const aClass = (fields: object = {}): Stored<StorageClass> => ({
  metadata: { name: 'gold', uid: 'uid-gold', resourceVersion: '1' },
  provisioner: 'disk.example.com',
  volumeBindingMode: 'Immediate',
  ...fields,
})
const COMPLETED_CLAIM = { annotations: { [BIND_COMPLETED]: 'yes' }, spec: { volumeName: 'pv' } }

describe('planClaim', () => {
  it('PROV-5 marks a bound claim lost only when the server confirms that its volume is missing or has another claim', () => {
    const claim = aClaim(COMPLETED_CLAIM)
    expect(plan({ claim })).toEqual({ do: 'read volume' })
    expect(plan({ claim, isLive: true })).toMatchObject({ do: 'mark lost', event: { reason: 'ClaimLost' } })
    const otherClaimsVolume = aVolume({ claim: { name: 'd', uid: 'uid-d' } })
    expect(plan({ claim, namedVolume: otherClaimsVolume })).toEqual({ do: 'read volume' })
    expect(plan({ claim, namedVolume: otherClaimsVolume, isLive: true })).toMatchObject({
      event: { reason: 'ClaimMisbound' },
    })
  })

  it('PROV-5 reports a claim whose volume has no uid in its claimRef, and rebinds one whose volume has no claimRef', () => {
    const claim = aClaim(COMPLETED_CLAIM)
    const reservedVolume = aVolume({ claim: { name: 'c' } })
    expect(plan({ claim, namedVolume: reservedVolume, isLive: true })).toMatchObject({
      event: { reason: 'ClaimMisbound' },
    })
    const freeVolume = aVolume()
    expect(plan({ claim, namedVolume: freeVolume })).toEqual({ do: 'bind', volume: freeVolume })
  })

  it('PROV-4 does not bind a volume that is being deleted to the claim that names it', () => {
    const namedVolume = aVolume({ metadata: { deletionTimestamp: 'now' } })
    expect(plan({ claim: aClaim({ spec: { volumeName: 'pv' } }), namedVolume })).toMatchObject({
      do: 'wait',
      event: { message: 'Cannot bind to requested volume "pv": the volume is marked for deletion "pv"' },
    })
  })

  it('PROV-4 binds a volume that the claim names and that is reserved for it, regardless of its size', () => {
    const namedVolume = aVolume({ size: '1Mi', claim: { name: 'c' } })
    expect(plan({ claim: aClaim({ spec: { volumeName: 'pv' } }), namedVolume })).toEqual({
      do: 'bind',
      volume: namedVolume,
    })
  })

  it('PROV-4 binds a volume without a class to a claim that has a class and names the volume only if a controller chose the volume', () => {
    const claim = aClaim({ className: 'gold', spec: { volumeName: 'pv' } })
    expect(plan({ claim, namedVolume: aVolume({ claim: { name: 'c' } }) })).toMatchObject({
      do: 'wait',
      phase: 'Pending',
      event: { message: 'Cannot bind to requested volume "pv": storageClassName does not match' },
    })
    const silverVolume = aVolume({ claim: { name: 'c' }, className: 'silver' })
    expect(plan({ claim, namedVolume: silverVolume })).toEqual({ do: 'bind', volume: silverVolume })
    const annotations = { [BOUND_BY_CONTROLLER]: 'yes' } // the binding started before the claim got its class
    const halfBoundVolume = aVolume({ claim: { name: 'c', uid: 'uid-c' }, annotations })
    expect(plan({ claim, namedVolume: halfBoundVolume })).toEqual({ do: 'bind', volume: halfBoundVolume })
  })

  it('PROV-3 assigns the default class only if the claim names no class and no volume fits', () => {
    const defaultClass = () => aClass()
    expect(plan({ defaultClass })).toEqual({ do: 'assign class', className: 'gold' })
    const fittingVolume = aVolume()
    expect(plan({ defaultClass, findVolume: () => fittingVolume })).toEqual({ do: 'bind', volume: fittingVolume })
    expect(plan({ defaultClass, claim: aClaim({ className: '' }) })).toMatchObject({ do: 'wait' })
    expect(plan({ defaultClass, claim: aClaim({ spec: { volumeName: 'pv' } }) })).toMatchObject({ do: 'wait' })
  })

  it('waits if the class has no binding mode', () => {
    const storageClass = aClass({ volumeBindingMode: undefined })
    expect(plan({ claim: aClaim({ className: 'gold' }), storageClass, findVolume: () => aVolume() })).toMatchObject({
      do: 'wait',
      message: 'VolumeBindingMode not set for StorageClass "gold"',
    })
  })

  it('sets Pending on a claim that waits for a pod, not on one that requests provisioning', () => {
    const claim = aClaim({ className: 'gold' })
    expect(plan({ claim, storageClass: aClass() })).not.toHaveProperty('phase')
    expect(plan({ claim, storageClass: aClass({ volumeBindingMode: 'WaitForFirstConsumer' }) })).toMatchObject({
      do: 'wait',
      phase: 'Pending',
    })
  })

  it('reports a claim ready for its first consumer while its class waits for one, and not ready if the class is missing or binds immediately', () => {
    const claim = aClaim({ className: 'gold' })
    const readinessWith = (storageClass?: Stored<StorageClass>) => {
      const action = plan({ claim, ...(storageClass ? { storageClass } : {}) })
      return action.do === 'wait' || action.do === 'provision' ? action.readiness : undefined
    }
    const delayedClass = aClass({ volumeBindingMode: 'WaitForFirstConsumer' })
    expect(readinessWith(delayedClass)).toMatchObject({ status: 'True', reason: 'WaitForFirstConsumer' })
    expect(readinessWith()).toMatchObject({ status: 'False', reason: 'StorageClassNotFound' })
    expect(readinessWith(aClass())).toMatchObject({ status: 'False', reason: 'ImmediateBinding' })
  })

  it('PROV-13 binds a claim being deleted only to the volume provisioned for it', () => {
    const claim = aClaim({ metadata: { deletionTimestamp: 'now' } })
    const calls: boolean[] = []
    const findVolume = ({ isDelayed }: { isDelayed: boolean }) => {
      calls.push(isDelayed)
      return undefined
    }
    expect(plan({ claim, findVolume, defaultClass: () => aClass() })).toEqual({
      do: 'wait',
      message: 'the claim is being deleted',
    })
    expect(calls).toEqual([true])
    const provisionedVolume = aVolume({ claim: { name: 'c', uid: 'uid-c' } })
    expect(plan({ claim, findVolume: () => provisionedVolume })).toEqual({ do: 'bind', volume: provisionedVolume })
  })

  it('VAC-12 neither binds nor provisions for a claim with an attributes class if the gate is disabled', () => {
    const claim = aClaim({ spec: { volumeAttributesClassName: 'silver', storageClassName: 'gold' } })
    const gateDisabled = { claim, isAttributesClassEnabled: false, storageClass: aClass(), findVolume: () => aVolume() }
    expect(plan(gateDisabled)).toMatchObject({
      do: 'wait',
      phase: 'Pending',
      event: {
        reason: 'VolumeMismatch',
        message: expect.stringContaining('not supported when the feature-gate VolumeAttributesClass is disabled'),
      },
    })
    expect(plan({ ...gateDisabled, isAttributesClassEnabled: true })).toMatchObject({ do: 'bind' })
    expect(plan({ ...gateDisabled, claim: aClaim({ spec: { volumeAttributesClassName: '' } }) })).toMatchObject({
      do: 'bind',
    })
  })

  it('neither binds nor provisions for a claim that requests amounts if the gate is disabled', () => {
    const claim = aClaim({
      spec: { storageClassName: 'gold', resources: { requests: { storage: '1Gi', iops: '500' } } },
    })
    const gateDisabled = { claim, isProvisionedIoEnabled: false, storageClass: aClass(), findVolume: () => aVolume() }
    expect(plan(gateDisabled)).toMatchObject({
      do: 'wait',
      phase: 'Pending',
      event: { message: expect.stringContaining('requests iops, which is not supported when the feature-gate') },
    })
    expect(plan({ ...gateDisabled, isProvisionedIoEnabled: true })).toMatchObject({ do: 'bind' })
  })

  it('VAC-12 keeps a bound claim bound if the gate is disabled', () => {
    const claim = aClaim({ ...COMPLETED_CLAIM, spec: { ...COMPLETED_CLAIM.spec, volumeAttributesClassName: 'silver' } })
    const namedVolume = aVolume({ claim: { name: 'c', uid: claim.metadata.uid! } })
    expect(plan({ claim, namedVolume, isAttributesClassEnabled: false })).toMatchObject({ do: 'bind' })
  })
})
