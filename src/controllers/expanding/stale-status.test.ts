// A failure is saved unconditionally, so it may arrive on the status after the expansion has ended.
import { describe, expect, it } from 'vitest'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { planExpansion } from './plan-expansion.ts'

function planOf(request: string, status: object, volumeSize = '2Gi') {
  return planExpansion({
    claim: {
      metadata: { name: 'data' },
      spec: { resources: { requests: { storage: request } } },
      status: { phase: 'Bound', capacity: { storage: '2Gi' }, ...status },
    } as PersistentVolumeClaim,
    volume: { metadata: { name: 'data' }, spec: { capacity: { storage: volumeSize } } } as PersistentVolume,
    isRejected: false,
    isHeldByUse: false,
    isNodeOnly: false,
    shortageFor: () => undefined,
    nowMs: 0,
    slowRetryMs: 300_000,
  })
}

const tried = (storage: string, state?: string) => ({
  allocatedResources: { storage },
  ...(state ? { allocatedResourceStatuses: { storage: state } } : {}),
})
const error = (type: string) => ({ conditions: [{ type, status: 'True', message: 'no' }] })

describe('planExpansion with a stale status', () => {
  it.each(['NodeResizePending', 'NodeResizeInProgress', 'NodeResizeInfeasible'])(
    'REX-9 clears %s of a size that the claim has',
    (state) => {
      expect(planOf('3Gi', tried('2Gi', state))).toEqual({ do: 'clearStatus' })
      expect(planOf('2Gi', tried('2Gi', state))).toEqual({ do: 'clearStatus' })
    },
  )

  it.each(['NodeResizeError', 'ControllerResizeError'])('REX-9 clears a %s of an expansion that has ended', (type) => {
    expect(planOf('2Gi', { ...tried('2Gi'), ...error(type) })).toEqual({ do: 'clearStatus' })
    expect(planOf('3Gi', { ...tried('2Gi'), ...error(type) }), 'the next expansion clears it').toMatchObject({
      do: 'expand',
      target: '3Gi',
    })
  })

  it('REX-9 keeps a status that still applies', () => {
    expect(planOf('3Gi', tried('3Gi', 'NodeResizePending'), '3Gi').do).not.toBe('clearStatus')
    expect(planOf('2Gi', { ...tried('3Gi', 'NodeResizeInfeasible'), ...error('NodeResizeError') }, '3Gi').do).not.toBe(
      'clearStatus',
    )
    expect(planOf('2Gi', { conditions: [{ type: 'FileSystemResizePending', status: 'True' }] }, '3Gi').do).not.toBe(
      'clearStatus',
    )
  })
})
