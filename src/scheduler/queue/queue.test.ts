import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { podInfo } from '../cluster/pod-info.ts'
import type { Rejection } from './unschedulable-pods.ts'
import { type QueuedPod, SchedulingQueue } from './queue.ts'

const NEVER = new AbortController().signal
const aPod = (name: string, priority = 0) =>
  podInfo({ metadata: { namespace: 'ns', name, uid: name }, spec: { containers: [], priority } })
const rejection = (likeness?: string): Rejection => ({
  because: 'no room',
  rejectedBy: new Set(['Plugin']),
  reasons: new Set(['full']),
  likeness,
})
const nothing = { shared: [], own: [] }
function aQueue() {
  const clock = manualClock()
  const queue = new SchedulingQueue({ clock, random: () => 0.5 })
  const take = () => queue.take()?.key
  const park = (name: string, likeness?: string) => {
    queue.add(aPod(name))
    const pod = queue.take()!
    queue.park(pod, rejection(likeness), nothing)
    return pod
  }
  return { clock, queue, take, park }
}

describe('pods that want a node', () => {
  it('CAP-12 are taken by priority, then in the order they came', () => {
    const { queue, take } = aQueue()
    queue.add(aPod('a'))
    queue.add(aPod('b', 5))
    queue.add(aPod('c'))
    expect([take(), take(), take(), take()]).toEqual(['ns/b', 'ns/a', 'ns/c', undefined])
  })

  it('CAP-12 that no node would take are tried again when helped, and never by time alone', async () => {
    const { clock, queue, take, park } = aQueue()
    const pod = park('a')
    await clock.advance(24 * 3_600_000)
    expect(take()).toBe(undefined)
    expect(queue.standing('ns/a')).toMatchObject({ is: 'unschedulable', because: 'no room', rejectedBy: ['Plugin'] })
    queue.help(pod)
    expect(take()).toBe('ns/a')
    expect(pod.attempts).toBe(2)
  })

  it('CAP-12 that went wrong come back later and later', async () => {
    const { clock, queue, take } = aQueue()
    queue.add(aPod('a'))
    const waits: number[] = []
    for (let round = 0; round < 6; round++) {
      const pod = queue.take()!
      queue.retryLater(pod, 'the server is down')
      const standing = queue.standing('ns/a')!
      waits.push(standing.nextAtMs! - clock.nowMs())
      expect(take()).toBe(undefined)
      await clock.advance(waits.at(-1)!)
    }
    expect(waits).toEqual([750, 1_500, 3_000, 6_000, 7_500, 7_500])
  })

  it('CAP-12 that are helped in vain over and over are tried no more often than they may', async () => {
    const { clock, queue, take } = aQueue()
    queue.add(aPod('a'))
    for (let round = 0; round < 11; round++) {
      const pod = queue.take()!
      queue.park(pod, rejection(), nothing)
      queue.help(pod)
    }
    expect(take()).toBe(undefined)
    expect(queue.standing('ns/a')).toMatchObject({ is: 'backing off' })
    await clock.advance(10_000)
    expect(take()).toBe('ns/a')
  })

  it('CAP-12 that are alike are tried one after the other, as long as there is room', () => {
    const { queue, take, park } = aQueue()
    const [a] = ['a', 'b', 'c'].map((name) => park(name, 'same')) as [QueuedPod, QueuedPod, QueuedPod]
    expect(queue.parked.verdictOn('same')).toMatchObject({ because: 'no room' })
    queue.help(a)
    expect(queue.parked.verdictOn('same')).toBe(undefined)
    expect(take()).toBe('ns/a')
    queue.found(a)
    expect(take()).toBe('ns/b')
    expect(take()).toBe(undefined)
  })

  it.each(['removed', 'changed', 'unlike the others after all'])(
    'CAP-12 the one that was to be tried for its likes, and is %s, hands on to the next',
    (what) => {
      const { queue, take, park } = aQueue()
      const a = park('a', 'same')
      park('b', 'same')
      queue.help(a)
      if (what === 'removed') queue.remove('ns/a')
      else if (what === 'changed') queue.add(aPod('a'))
      else queue.park(queue.take()!, rejection('different'), nothing)
      const taken = [take(), take()]
      expect(taken).toContain('ns/b')
    },
  )

  it('CAP-12 that change while in hand are looked at again', () => {
    const { queue, take } = aQueue()
    queue.add(aPod('a'))
    const pod = queue.take()!
    queue.add(aPod('a', 3))
    expect(take()).toBe(undefined)
    queue.park(pod, rejection(), nothing)
    expect(queue.take()).toMatchObject({ key: 'ns/a', facts: { priority: 3 } })
  })

  it('CAP-12 wake whoever waits for one', async () => {
    const { queue } = aQueue()
    let isReady = false
    const ready = queue.whenReady(NEVER).then(() => (isReady = true))
    await Promise.resolve()
    expect(isReady).toBe(false)
    queue.add(aPod('a'))
    await ready
  })

  it('CAP-12 are in one place each, whatever happens to them', async () => {
    const step = fc.record({
      do: fc.constantFrom('add', 'remove', 'take', 'park', 'retry', 'found', 'help', 'wait'),
      pod: fc.constantFrom('a', 'b', 'c', 'd'),
      likeness: fc.constantFrom(undefined, 'x', 'y'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), async (steps) => {
        const { clock, queue } = aQueue()
        const wanted = new Set<string>()
        const inHand = new Map<string, QueuedPod>()
        const parked = new Map<string, QueuedPod>()
        for (const { do: what, pod: name, likeness } of steps) {
          const key = `ns/${name}`
          const held = inHand.get(key)
          if (what === 'add') {
            queue.add(aPod(name))
            wanted.add(key)
          } else if (what === 'remove') {
            queue.remove(key)
            wanted.delete(key)
            inHand.delete(key)
          } else if (what === 'take') {
            const pod = queue.take()
            if (pod) inHand.set(pod.key, pod)
          } else if (what === 'park' && held) {
            queue.park(held, rejection(likeness), nothing)
            inHand.delete(key)
            parked.set(key, held)
          } else if (what === 'retry' && held) {
            queue.retryLater(held, 'failed')
            inHand.delete(key)
          } else if (what === 'found' && held) queue.found(held)
          else if (what === 'help' && parked.has(key)) queue.help(parked.get(key)!)
          else if (what === 'wait') await clock.advance(20_000)
          const standings = queue.standings()
          expect(standings.map((one) => one.key).sort()).toEqual([...wanted].sort())
          const count = (is: string) => standings.filter((one) => one.is === is).length
          expect(queue.sizes()).toEqual({
            active: count('active'),
            backoff: count('backing off'),
            unschedulable: count('unschedulable'),
          })
          expect(count('in hand')).toBe(inHand.size)
        }
        // Nothing is lost: helped, every parked pod is taken in the end.
        for (const { key, is } of queue.standings()) if (is === 'unschedulable') queue.help(parked.get(key)!)
        await clock.advance(60_000)
        const rest = new Set(inHand.keys())
        for (let pod = queue.take(); pod; pod = queue.take()) rest.add(pod.key)
        expect([...rest].sort()).toEqual([...wanted].sort())
      }),
      { numRuns: 200 },
    )
  })
})
