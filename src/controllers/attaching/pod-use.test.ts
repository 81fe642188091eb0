import { describe, expect, it } from 'vitest'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { needsVolumes, usesClaim } from './pod-use.ts'

const aPod = (status: object, metadata: object = {}, nodeName = 'left') =>
  ({
    metadata: { name: 'web', namespace: 'shop', uid: 'u', ...metadata },
    spec: { nodeName },
    status,
  }) as unknown as Pod
const GOING = { deletionTimestamp: '2026-01-01T00:00:00Z' }
const RUNNING = { containerStatuses: [{ state: { running: {} } }] }

describe('a pod', () => {
  it('SYS-18 needs its volumes from its node until it has ended there', () => {
    expect(needsVolumes(aPod({}, {}, ''), false)).toBe(false)
    expect(needsVolumes(aPod({ phase: 'Pending' }), false)).toBe(true)
    expect(needsVolumes(aPod({ phase: 'Running', ...RUNNING }, GOING), false)).toBe(true)
    expect(needsVolumes(aPod({ containerStatuses: [{ state: { terminated: {} } }] }, GOING), false)).toBe(false)
    expect(needsVolumes(aPod({ phase: 'Failed' }), false)).toBe(false)
  })

  it('SYS-18 that is going on a node out of service needs nothing: nobody there can say that it has ended', () => {
    expect(needsVolumes(aPod(RUNNING, GOING), true)).toBe(false)
    expect(needsVolumes(aPod(RUNNING), true)).toBe(true)
  })

  it('SYS-18 uses a claim called like one of its template only if it was made for this very pod', () => {
    const pod = {
      metadata: { name: 'web', namespace: 'shop', uid: 'u' },
      spec: {
        volumes: [
          { name: 'scratch', ephemeral: {} },
          { name: 'data', persistentVolumeClaim: { claimName: 'd' } },
        ],
      },
    } as unknown as Pod
    const claim = (name: string, namespace: string, ownerReferences: object[] = []) =>
      ({ metadata: { name, namespace, ownerReferences } }) as unknown as PersistentVolumeClaim
    expect(usesClaim(pod, claim('d', 'shop'))).toBe(true)
    expect(usesClaim(pod, claim('d', 'other'))).toBe(false)
    expect(usesClaim(pod, claim('web-scratch', 'shop'))).toBe(false)
    expect(usesClaim(pod, claim('web-scratch', 'shop', [{ controller: true, uid: 'u' }]))).toBe(true)
  })
})
