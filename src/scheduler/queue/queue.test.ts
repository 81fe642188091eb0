import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { podInfo } from '../cluster/pod-info.ts'
import { type QueuedPod, SchedulingQueue } from './queue.ts'
import type { Rejection } from './unschedulable-pods.ts'

const NEVER = new AbortController().signal
const aPod = (name: string, priority = 0) =>
  podInfo({ metadata: { namespace: 'ns', name, uid: name }, spec: { containers: [], priority } })
const rejection = (signature?: string): Rejection => ({
  message: 'no room',
  rejectedBy: new Set(['Plugin']),
  reasons: new Set(['full']),
  signature,
})
const noKeys = { ofClass: [], ofPod: [] }
function aQueue() {
  const clock = manualClock()
  const queue = new SchedulingQueue({ clock, random: () => 0.5 })
  const pop = () => queue.pop()?.key
  const addUnschedulable = (name: string, signature?: string) => {
    queue.add(aPod(name))
    const pod = queue.pop()!
    queue.addUnschedulable(pod, rejection(signature), noKeys)
    return pod
  }
  return { clock, queue, pop, addUnschedulable }
}

describe('the scheduling queue', () => {
  it('CAP-12 pops pods by priority, then in the order they were added', () => {
    const { queue, pop } = aQueue()
    queue.add(aPod('a'))
    queue.add(aPod('b', 5))
    queue.add(aPod('c'))
    expect([pop(), pop(), pop(), pop()]).toEqual(['ns/b', 'ns/a', 'ns/c', undefined])
  })

  it('CAP-12 retries an unschedulable pod when it is requeued, and never on a timer', async () => {
    const { clock, queue, pop, addUnschedulable } = aQueue()
    const pod = addUnschedulable('a')
    await clock.advance(24 * 3_600_000)
    expect(pop()).toBe(undefined)
    expect(queue.status('ns/a')).toMatchObject({ state: 'unschedulable', message: 'no room', rejectedBy: ['Plugin'] })
    queue.requeue(pod)
    expect(pop()).toBe('ns/a')
    expect(pod.attempts).toBe(2)
  })

  it('CAP-12 retries a failed pod with exponential backoff', async () => {
    const { clock, queue, pop } = aQueue()
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

  it('CAP-12 applies the backoff to a pod that hints requeue more than ten times without success', async () => {
    const { clock, queue, pop } = aQueue()
    queue.add(aPod('a'))
    for (let round = 0; round < 11; round++) {
      const pod = queue.pop()!
      queue.addUnschedulable(pod, rejection(), noKeys)
      queue.requeue(pod)
    }
    expect(pop()).toBe(undefined)
    expect(queue.status('ns/a')).toMatchObject({ state: 'backoff' })
    await clock.advance(10_000)
    expect(pop()).toBe('ns/a')
  })

  it('CAP-12 tries the pods of an equivalence class one after the other, while each gets a node', () => {
    const { queue, pop, addUnschedulable } = aQueue()
    const [a] = ['a', 'b', 'c'].map((name) => addUnschedulable(name, 'same')) as [QueuedPod, QueuedPod, QueuedPod]
    expect(queue.unschedulable.cachedRejection('same')).toMatchObject({ message: 'no room' })
    queue.requeue(a)
    expect(queue.unschedulable.cachedRejection('same')).toBe(undefined)
    expect(pop()).toBe('ns/a')
    queue.nodeFound(a)
    expect(pop()).toBe('ns/b')
    expect(pop()).toBe(undefined)
  })

  it.each(['removed', 'changed', 'in another class by then'])(
    'CAP-12 tries the next pod of a class when the one to be tried is %s',
    (what) => {
      const { queue, pop, addUnschedulable } = aQueue()
      const a = addUnschedulable('a', 'same')
      addUnschedulable('b', 'same')
      queue.requeue(a)
      if (what === 'removed') queue.remove('ns/a')
      else if (what === 'changed') queue.add(aPod('a'))
      else queue.addUnschedulable(queue.pop()!, rejection('different'), noKeys)
      const taken = [pop(), pop()]
      expect(taken).toContain('ns/b')
    },
  )

  it('CAP-12 retries a pod that changed while in flight', () => {
    const { queue, pop } = aQueue()
    queue.add(aPod('a'))
    const pod = queue.pop()!
    queue.add(aPod('a', 3))
    expect(pop()).toBe(undefined)
    queue.addUnschedulable(pod, rejection(), noKeys)
    expect(queue.pop()).toMatchObject({ key: 'ns/a', info: { priority: 3 } })
  })

  it('CAP-12 resolves whenReady when a pod is added', async () => {
    const { queue } = aQueue()
    let isReady = false
    const ready = queue.whenReady(NEVER).then(() => (isReady = true))
    await Promise.resolve()
    expect(isReady).toBe(false)
    queue.add(aPod('a'))
    await ready
  })

  it('CAP-12 keeps each pod in exactly one state under any sequence of calls', async () => {
    const step = fc.record({
      do: fc.constantFrom('add', 'remove', 'pop', 'reject', 'retry', 'found', 'help', 'wait'),
      pod: fc.constantFrom('a', 'b', 'c', 'd'),
      signature: fc.constantFrom(undefined, 'x', 'y'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), async (steps) => {
        const { clock, queue } = aQueue()
        const wanted = new Set<string>()
        const inFlight = new Map<string, QueuedPod>()
        const rejected = new Map<string, QueuedPod>()
        for (const { do: what, pod: name, signature } of steps) {
          const key = `ns/${name}`
          const held = inFlight.get(key)
          if (what === 'add') {
            queue.add(aPod(name))
            wanted.add(key)
          } else if (what === 'remove') {
            queue.remove(key)
            wanted.delete(key)
            inFlight.delete(key)
          } else if (what === 'pop') {
            const pod = queue.pop()
            if (pod) inFlight.set(pod.key, pod)
          } else if (what === 'reject' && held) {
            queue.addUnschedulable(held, rejection(signature), noKeys)
            inFlight.delete(key)
            rejected.set(key, held)
          } else if (what === 'retry' && held) {
            queue.retryAfterBackoff(held, 'failed')
            inFlight.delete(key)
          } else if (what === 'found' && held) queue.nodeFound(held)
          else if (what === 'help' && rejected.has(key)) queue.requeue(rejected.get(key)!)
          else if (what === 'wait') await clock.advance(20_000)
          const statuses = queue.statuses()
          expect(statuses.map((one) => one.key).sort()).toEqual([...wanted].sort())
          const count = (state: string) => statuses.filter((one) => one.state === state).length
          expect(queue.sizes()).toEqual({
            active: count('active'),
            backoff: count('backoff'),
            unschedulable: count('unschedulable'),
          })
          expect(count('in flight')).toBe(inFlight.size)
        }
        // No pod is lost: once requeued, every unschedulable pod is popped.
        for (const { key, state } of queue.statuses()) if (state === 'unschedulable') queue.requeue(rejected.get(key)!)
        await clock.advance(60_000)
        const rest = new Set(inFlight.keys())
        for (let pod = queue.pop(); pod; pod = queue.pop()) rest.add(pod.key)
        expect([...rest].sort()).toEqual([...wanted].sort())
      }),
      { numRuns: 200 },
    )
  })
})
