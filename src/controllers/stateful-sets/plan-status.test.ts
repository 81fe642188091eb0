import { describe, expect, it } from 'vitest'
import { calculateStatus, isSameStatus, nextAvailabilityMs } from './plan-status.ts'
import { createPod, createSet, NEW, NOW_MS, OLD, type PodSketch } from './stateful-sets.fixture.ts'

function statusOf(spec: Parameters<typeof createSet>[0], sketches: readonly PodSketch[]) {
  const set = createSet(spec)
  const pods = sketches.map((sketch, ordinal) => createPod(set, ordinal, sketch))
  const revisions = { currentRevision: OLD.name, updateRevision: NEW.name, collisionCount: 0 }
  return calculateStatus({ set, pods, ...revisions, nowMs: NOW_MS })
}

describe('calculateStatus', () => {
  it('SYS-27 counts pods by state and revision', () => {
    const pods: PodSketch[] = [
      {},
      { readySeconds: 5 },
      { revision: NEW.name, isTerminating: true },
      { revision: NEW.name, state: 'pending' },
    ]
    expect(statusOf({ replicas: 4, minReadySeconds: 10 }, pods)).toEqual({
      observedGeneration: 1,
      replicas: 4,
      readyReplicas: 3,
      availableReplicas: 2,
      currentReplicas: 2,
      updatedReplicas: 1,
      currentRevision: OLD.name,
      updateRevision: NEW.name,
      collisionCount: 0,
    })
  })

  it('SYS-27 completes an update when all pods are ready and of the update revision', () => {
    const updated = { revision: NEW.name }
    expect(statusOf({ replicas: 2 }, [updated, {}])).toMatchObject({ currentRevision: OLD.name, currentReplicas: 1 })
    expect(statusOf({ replicas: 2 }, [updated, updated])).toMatchObject({
      currentRevision: NEW.name,
      currentReplicas: 2,
    })
  })
})

describe('isSameStatus', () => {
  it('SYS-27 treats an absent counter as 0', () => {
    expect(isSameStatus({ replicas: 0 }, { replicas: 0, readyReplicas: 0, collisionCount: 0 })).toBe(true)
    expect(isSameStatus({ replicas: 1 }, { replicas: 1, readyReplicas: 1 })).toBe(false)
  })
})

describe('nextAvailabilityMs', () => {
  it('SYS-27 returns the time at which the next ready pod becomes available', () => {
    const set = createSet({ minReadySeconds: 10 })
    const pods = [createPod(set, 0, { readySeconds: 3 }), createPod(set, 1, { readySeconds: 8 })]
    expect(nextAvailabilityMs({ set, pods, nowMs: NOW_MS })).toBe(NOW_MS + 2_000)
    expect(nextAvailabilityMs({ set, pods: [createPod(set, 0)], nowMs: NOW_MS })).toBeUndefined()
  })
})
