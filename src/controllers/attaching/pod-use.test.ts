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
const DELETING = { deletionTimestamp: '2026-01-01T00:00:00Z' }
const RUNNING = { containerStatuses: [{ state: { running: {} } }] }

describe('needsVolumes', () => {
  it('SYS-18 is true from the assignment to a node until the pod has terminated', () => {
    expect(needsVolumes(aPod({}, {}, ''), false)).toBe(false)
    expect(needsVolumes(aPod({ phase: 'Pending' }), false)).toBe(true)
    expect(needsVolumes(aPod({ phase: 'Running', ...RUNNING }, DELETING), false)).toBe(true)
    expect(needsVolumes(aPod({ containerStatuses: [{ state: { terminated: {} } }] }, DELETING), false)).toBe(false)
    expect(needsVolumes(aPod({ phase: 'Failed' }), false)).toBe(false)
  })

  it('SYS-18 is false for a pod that is being deleted on an out-of-service node', () => {
    expect(needsVolumes(aPod(RUNNING, DELETING), true)).toBe(false)
    expect(needsVolumes(aPod(RUNNING), true)).toBe(true)
  })
})

describe('usesClaim', () => {
  it('SYS-18 is true for an ephemeral claim only if the pod owns it', () => {
    const pod = {
      metadata: { name: 'web', namespace: 'shop', uid: 'u' },
      spec: {
        volumes: [
          { name: 'scratch', ephemeral: {} },
          { name: 'data', persistentVolumeClaim: { claimName: 'd' } },
        ],
      },
    } as unknown as Pod
    const aClaim = (name: string, namespace: string, ownerReferences: object[] = []) =>
      ({ metadata: { name, namespace, ownerReferences } }) as unknown as PersistentVolumeClaim
    expect(usesClaim(pod, aClaim('d', 'shop'))).toBe(true)
    expect(usesClaim(pod, aClaim('d', 'other'))).toBe(false)
    expect(usesClaim(pod, aClaim('web-scratch', 'shop'))).toBe(false)
    expect(usesClaim(pod, aClaim('web-scratch', 'shop', [{ controller: true, uid: 'u' }]))).toBe(true)
  })
})
