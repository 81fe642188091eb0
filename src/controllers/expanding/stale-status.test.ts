// Tests planExpansion with the status of an expansion that has ended: a failure is saved without preconditions, possibly
// after the end of the expansion.
import { describe, expect, it } from 'vitest'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { planExpansion } from './plan-expansion.ts'

function plan(request: string, status: object, volumeSize = '2Gi') {
  return planExpansion({
    claim: {
      metadata: { name: 'data' },
      spec: { resources: { requests: { storage: request } } },
      status: { phase: 'Bound', capacity: { storage: '2Gi' }, ...status },
    } as PersistentVolumeClaim,
    volume: { metadata: { name: 'data' }, spec: { capacity: { storage: volumeSize } } } as PersistentVolume,
    mayBeLarger: false,
    isEdited: false,
    isBlockedByUse: false,
    isNodeOnly: false,
    shortageFor: () => undefined,
    nowMs: 0,
    slowRetryMs: 300_000,
  })
}

const allocatedStatus = (storage: string, state?: string) => ({
  allocatedResources: { storage },
  ...(state ? { allocatedResourceStatuses: { storage: state } } : {}),
})
const errorStatus = (type: string) => ({ conditions: [{ type, status: 'True', message: 'no' }] })

describe('planExpansion with a stale status', () => {
  it.each(['NodeResizePending', 'NodeResizeInProgress', 'NodeResizeInfeasible'])(
    'REX-9 clears the state %s of a size that the claim has',
    (state) => {
      expect(plan('3Gi', allocatedStatus('2Gi', state))).toEqual({ do: 'clearStatus' })
      expect(plan('2Gi', allocatedStatus('2Gi', state))).toEqual({ do: 'clearStatus' })
    },
  )

  it.each(['NodeResizeError', 'ControllerResizeError'])('REX-9 clears a %s of an expansion that has ended', (type) => {
    expect(plan('2Gi', { ...allocatedStatus('2Gi'), ...errorStatus(type) })).toEqual({ do: 'clearStatus' })
    expect(
      plan('3Gi', { ...allocatedStatus('2Gi'), ...errorStatus(type) }),
      'the next expansion clears it',
    ).toMatchObject({
      do: 'expand',
      target: '3Gi',
    })
  })

  it('REX-9 keeps a status that still applies', () => {
    expect(plan('3Gi', allocatedStatus('3Gi', 'NodeResizePending'), '3Gi').do).not.toBe('clearStatus')
    expect(
      plan('2Gi', { ...allocatedStatus('3Gi', 'NodeResizeInfeasible'), ...errorStatus('NodeResizeError') }, '3Gi').do,
    ).not.toBe('clearStatus')
    expect(plan('2Gi', { conditions: [{ type: 'FileSystemResizePending', status: 'True' }] }, '3Gi').do).not.toBe(
      'clearStatus',
    )
  })
})
