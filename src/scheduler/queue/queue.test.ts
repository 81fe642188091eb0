import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { podInfoOf } from '../cluster/pod-info.ts'
import { type QueuedPod, SchedulingQueue } from './queue.ts'
import type { Rejection } from './unschedulable-pods.ts'

const NEVER = new AbortController().signal
const aPod = (name: string, priority = 0) =>
  podInfoOf({ metadata: { namespace: 'ns', name, uid: name }, spec: { containers: [], priority } })
const aRejection = (signature?: string): Rejection => ({
  message: 'no node fits',
  rejectedBy: new Set(['Plugin']),
  reasons: new Set(['full']),
  signature,
})
const NO_KEYS = { classKeys: [], podKeys: [] }
function createHarness() {
  const clock = manualClock()
  const queue = new SchedulingQueue({ clock, random: () => 0.5 })
  const pop = () => queue.pop()?.key
  const addUnschedulable = (name: string, signature?: string) => {
    queue.add(aPod(name))
    const pod = queue.pop()!
    queue.addUnschedulable(pod, aRejection(signature), NO_KEYS)
    return pod
  }
  return { clock, queue, pop, addUnschedulable }
}

describe('the scheduling queue', () => {
  it('pops pods by priority, then in the order in which they were added', () => {
    const { queue, pop } = createHarness()
    queue.add(aPod('a'))
    queue.add(aPod('b', 5))
    queue.add(aPod('c'))
    expect([pop(), pop(), pop(), pop()]).toEqual(['ns/b', 'ns/a', 'ns/c', undefined])
  })

  it('CAP-12 retries an unschedulable pod only when it is requeued', async () => {
    const { clock, queue, pop, addUnschedulable } = createHarness()
    const pod = addUnschedulable('a')
    await clock.advance(24 * 3_600_000)
    expect(pop()).toBe(undefined)
    const expectedState = { state: 'unschedulable', message: 'no node fits', rejectedBy: ['Plugin'] }
    expect(queue.status('ns/a')).toMatchObject(expectedState)
    queue.requeue(pod)
    expect(pop()).toBe('ns/a')
    expect(pod.attempts).toBe(2)
  })

  it('retries a failed pod with exponential backoff', async () => {
    const { clock, queue, pop } = createHarness()
    queue.add(aPod('a'))
    const waits: number[] = []
    for (let round = 0; round < 6; round++) {
      const pod = queue.pop()!
      queue.retryAfterBackoff(pod, 'the server is down')
      const status = queue.status('ns/a')!
      waits.push(status.nextAtMs! - clock.nowMs())
      expect(pop()).toBe(undefined)
      await clock.advance(waits.at(-1)!)
    }
    expect(waits).toEqual([750, 1_500, 3_000, 6_000, 7_500, 7_500])
  })

  it('increases the backoff of a pod whose binding fails on every node that is found for it', async () => {
    const { clock, queue } = createHarness()
    queue.add(aPod('a'))
    const waits: number[] = []
    for (let round = 0; round < 6; round++) {
      const pod = queue.pop()!
      queue.nodeFound(pod)
      queue.retryAfterBackoff(pod, 'the driver has no space')
      waits.push(queue.status('ns/a')!.nextAtMs! - clock.nowMs())
      await clock.advance(waits.at(-1)!)
    }
    expect(waits).toEqual([750, 1_500, 3_000, 6_000, 7_500, 7_500])
  })

  it('backs off a pod that was requeued more than ten times without success', async () => {
    const { clock, queue, pop } = createHarness()
    queue.add(aPod('a'))
    for (let round = 0; round < 11; round++) {
      const pod = queue.pop()!
      queue.addUnschedulable(pod, aRejection(), NO_KEYS)
      queue.requeue(pod)
    }
    expect(pop()).toBe(undefined)
    expect(queue.status('ns/a')).toMatchObject({ state: 'backoff' })
    await clock.advance(10_000)
    expect(pop()).toBe('ns/a')
  })

  it('CAP-12 requeues the next pod of an equivalence class when a node is found for the previous one', () => {
    const { queue, pop, addUnschedulable } = createHarness()
    const [a] = ['a', 'b', 'c'].map((name) => addUnschedulable(name, 'same')) as [QueuedPod, QueuedPod, QueuedPod]
    expect(queue.unschedulable.cachedRejection('same')).toMatchObject({ message: 'no node fits' })
    queue.requeue(a)
    expect(queue.unschedulable.cachedRejection('same')).toBe(undefined)
    expect(pop()).toBe('ns/a')
    queue.nodeFound(a)
    expect(pop()).toBe('ns/b')
    expect(pop()).toBe(undefined)
  })

  it.each(['removed', 'changed', 'moved to another class'])(
    'CAP-12 requeues the next pod of an equivalence class when the requeued pod is %s',
    (change) => {
      const { queue, pop, addUnschedulable } = createHarness()
      const a = addUnschedulable('a', 'same')
      addUnschedulable('b', 'same')
      queue.requeue(a)
      if (change === 'removed') queue.remove('ns/a')
      else if (change === 'changed') queue.add(aPod('a'))
      else queue.addUnschedulable(queue.pop()!, aRejection('different'), NO_KEYS)
      const poppedKeys = [pop(), pop()]
      expect(poppedKeys).toContain('ns/b')
    },
  )

  it('CAP-12 retries a pod that changed while in flight', () => {
    const { queue, pop } = createHarness()
    queue.add(aPod('a'))
    const pod = queue.pop()!
    queue.add(aPod('a', 3))
    expect(pop()).toBe(undefined)
    queue.addUnschedulable(pod, aRejection(), NO_KEYS)
    expect(queue.pop()).toMatchObject({ key: 'ns/a', info: { priority: 3 } })
  })

  it('resolves whenReady when a pod is added', async () => {
    const { queue } = createHarness()
    let isReady = false
    const ready = queue.whenReady(NEVER).then(() => (isReady = true))
    await Promise.resolve()
    expect(isReady).toBe(false)
    queue.add(aPod('a'))
    await ready
  })

  it('keeps each pod in exactly one state under any sequence of calls', async () => {
    const step = fc.record({
      do: fc.constantFrom('add', 'remove', 'pop', 'reject', 'retry', 'found', 'requeue', 'wait'),
      pod: fc.constantFrom('a', 'b', 'c', 'd'),
      signature: fc.constantFrom(undefined, 'x', 'y'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), async (steps) => {
        const { clock, queue } = createHarness()
        const expectedKeys = new Set<string>()
        const podsInFlight = new Map<string, QueuedPod>()
        const rejectedPods = new Map<string, QueuedPod>()
        for (const { do: change, pod: name, signature } of steps) {
          const key = `ns/${name}`
          const inFlightPod = podsInFlight.get(key)
          if (change === 'add') {
            queue.add(aPod(name))
            expectedKeys.add(key)
          } else if (change === 'remove') {
            queue.remove(key)
            expectedKeys.delete(key)
            podsInFlight.delete(key)
          } else if (change === 'pop') {
            const pod = queue.pop()
            if (pod) podsInFlight.set(pod.key, pod)
          } else if (change === 'reject' && inFlightPod) {
            queue.addUnschedulable(inFlightPod, aRejection(signature), NO_KEYS)
            podsInFlight.delete(key)
            rejectedPods.set(key, inFlightPod)
          } else if (change === 'retry' && inFlightPod) {
            queue.retryAfterBackoff(inFlightPod, 'failed')
            podsInFlight.delete(key)
          } else if (change === 'found' && inFlightPod) queue.nodeFound(inFlightPod)
          else if (change === 'requeue' && rejectedPods.has(key)) queue.requeue(rejectedPods.get(key)!)
          else if (change === 'wait') await clock.advance(20_000)
          const statuses = queue.statuses()
          expect(statuses.map((status) => status.key).sort()).toEqual([...expectedKeys].sort())
          const count = (state: string) => statuses.filter((status) => status.state === state).length
          expect(queue.sizes()).toEqual({
            active: count('active'),
            backoff: count('backoff'),
            unschedulable: count('unschedulable'),
          })
          expect(count('in flight')).toBe(podsInFlight.size)
        }
        // Every unschedulable pod is popped after it is requeued.
        for (const { key, state } of queue.statuses())
          if (state === 'unschedulable') queue.requeue(rejectedPods.get(key)!)
        await clock.advance(60_000)
        const remainingKeys = new Set(podsInFlight.keys())
        for (let pod = queue.pop(); pod; pod = queue.pop()) remainingKeys.add(pod.key)
        expect([...remainingKeys].sort()).toEqual([...expectedKeys].sort())
      }),
      { numRuns: 200 },
    )
  })
})
