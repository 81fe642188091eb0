// Failures are told whatever became of the claim meanwhile, so one may arrive after the growth it tells of is over.
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
    isFinal: false,
    isHeldByUse: false,
    isNodeOnly: false,
    shortageFor: () => undefined,
    nowMs: 0,
    slowMs: 300_000,
  })
}

const tried = (storage: string, state?: string) => ({
  allocatedResources: { storage },
  ...(state ? { allocatedResourceStatuses: { storage: state } } : {}),
})
const error = (type: string) => ({ conditions: [{ type, status: 'True', message: 'no' }] })

describe('what is told late', () => {
  it.each(['NodeResizePending', 'NodeResizeInProgress', 'NodeResizeInfeasible'])(
    'REX-9 %s of a size that the claim has does not hold up the next one',
    (state) => {
      expect(planOf('3Gi', tried('2Gi', state))).toEqual({ do: 'clear' })
      expect(planOf('2Gi', tried('2Gi', state))).toEqual({ do: 'clear' })
    },
  )

  it.each(['NodeResizeError', 'ControllerResizeError'])('REX-9 a %s of a growth that is over is taken away', (type) => {
    expect(planOf('2Gi', { ...tried('2Gi'), ...error(type) })).toEqual({ do: 'clear' })
    expect(planOf('3Gi', { ...tried('2Gi'), ...error(type) }), 'the next growth takes it away').toMatchObject({
      do: 'expand',
      target: '3Gi',
    })
  })

  it('REX-9 what is still true stays', () => {
    expect(planOf('3Gi', tried('3Gi', 'NodeResizePending'), '3Gi').do).not.toBe('clear')
    expect(planOf('2Gi', { ...tried('3Gi', 'NodeResizeInfeasible'), ...error('NodeResizeError') }, '3Gi').do).not.toBe(
      'clear',
    )
    expect(planOf('2Gi', { conditions: [{ type: 'FileSystemResizePending', status: 'True' }] }, '3Gi').do).not.toBe(
      'clear',
    )
  })
})
