import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ManualClock, manualClock } from '../base/manual-clock.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from './outcome.ts'
import { createWorkQueue, type WorkQueueOptions } from './work-queue.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** A queue whose reconciles the test completes: they return the `outcomes` in order, then done. */
function aQueue(options: Partial<WorkQueueOptions> = {}) {
  const clock: ManualClock = manualClock()
  const queue = createWorkQueue({ name: 'test', clock, random: () => 1, workers: 1, ...options })
  const worked: string[] = []
  const closing = new AbortController()
  const outcomes: (Outcome | Error)[] = []
  const run = (reconcile?: (key: string) => Promise<Outcome>) =>
    queue.run(async (key) => {
      worked.push(key)
      if (reconcile) return reconcile(key)
      const outcome = outcomes.shift() ?? done
      if (outcome instanceof Error) throw outcome
      return outcome
    }, closing.signal)
  return { clock, queue, worked, outcomes, run, closing }
}

describe('a work queue', () => {
  it('processes a key once, regardless of how often it was added', async () => {
    const { queue, worked, run, closing } = aQueue()
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key)
    const over = run()
    await turn()
    expect(worked).toEqual(['a', 'b'])
    expect(queue.standings()).toEqual([])
    closing.abort()
    await over
  })

  it('never processes a key twice at once, and runs it again if it was added meanwhile', async () => {
    const { queue, worked, run, closing } = aQueue({ workers: 4 })
    const ends: (() => void)[] = []
    const over = run(() => new Promise((resolve) => ends.push(() => resolve(done))))
    queue.add('a')
    await turn()
    queue.add('a')
    queue.add('b')
    await turn()
    expect(worked).toEqual(['a', 'b'])
    ends[0]!()
    await turn()
    expect(worked).toEqual(['a', 'b', 'a'])
    for (const end of ends) end()
    closing.abort()
    await over
  })

  it('processes no more keys at once than it has workers', async () => {
    const { queue, run, closing } = aQueue({ workers: 3 })
    let end = () => {}
    const gate = new Promise<void>((resolve) => {
      end = resolve
    })
    const over = run(async () => {
      await gate
      return done
    })
    for (let i = 0; i < 10; i++) queue.add(`k${i}`)
    await turn()
    expect(queue.stats()).toMatchObject({ running: 3, depth: 7 })
    end()
    await turn()
    expect(queue.stats()).toMatchObject({ running: 0, depth: 0 })
    closing.abort()
    await over
  })

  it('doubles the delay after every failure up to a bound, and resets it after a success', async () => {
    const { queue, clock, worked, outcomes, run, closing } = aQueue({ backoff: { baseMs: 100, maxMs: 400 } })
    outcomes.push(new Error('1'), new Error('2'), backOff('3'), new Error('4'), done, new Error('5'))
    const over = run()
    queue.add('a')
    await turn()
    const waits: number[] = []
    for (let tries = 1; tries < 5; tries++) {
      const { nextAtMs = 0 } = queue.standing('a')!
      waits.push(nextAtMs - clock.nowMs())
      await clock.advance(nextAtMs - clock.nowMs())
      await turn()
    }
    expect(waits).toEqual([100, 200, 400, 400])
    expect(worked.length).toBe(5)
    expect(queue.standing('a')).toBeUndefined()
    queue.add('a')
    await turn()
    expect(queue.standing('a')!.nextAtMs! - clock.nowMs()).toBe(100)
    closing.abort()
    await over
  })

  it('reports why each key waits and when it is retried', async () => {
    const { queue, clock, outcomes, run, closing } = aQueue()
    outcomes.push(retryAfter(5_000, 'the driver is busy'), stuck('class "fast" is missing'), new Error('boom'))
    const over = run()
    for (const key of ['a', 'b', 'c']) queue.add(key)
    await turn()
    expect(queue.standings()).toEqual([
      { key: 'a', is: 'waiting', because: 'the driver is busy', nextAtMs: clock.nowMs() + 5_000, failures: 0 },
      { key: 'c', is: 'waiting', because: 'boom', nextAtMs: clock.nowMs() + 50, failures: 1 },
      { key: 'b', is: 'stuck', because: 'class "fast" is missing', failures: 0 },
    ])
    closing.abort()
    await over
  })

  it('does not retry a stuck key until it is added again', async () => {
    const { queue, clock, worked, outcomes, run, closing } = aQueue()
    outcomes.push(stuck('waiting for a class'))
    const over = run()
    queue.add('a')
    await turn()
    await clock.advance(24 * 3_600_000)
    await turn()
    expect(worked).toEqual(['a'])
    queue.add('a')
    await turn()
    expect(worked).toEqual(['a', 'a'])
    closing.abort()
    await over
  })

  it('ends a wait on add, and takes the earlier of two times', async () => {
    const { queue, clock, worked, outcomes, run, closing } = aQueue()
    outcomes.push(retryAfter(60_000, 'later'))
    const over = run()
    queue.add('a')
    await turn()
    queue.add('a') // as after a change of the object it waits for
    await turn()
    expect(worked).toEqual(['a', 'a'])
    queue.addAfter('b', 1_000)
    queue.addAfter('b', 9_000)
    queue.addAfter('b', 500)
    await clock.advance(499)
    await turn()
    expect(worked).toEqual(['a', 'a'])
    await clock.advance(1)
    await turn()
    await clock.advance(20_000)
    await turn()
    expect(worked).toEqual(['a', 'a', 'b'])
    closing.abort()
    await over
  })

  it('does not spin on a key whose failing reconcile enqueues it', async () => {
    const { queue, clock, worked, run, closing } = aQueue()
    const over = run(async (key) => {
      queue.add(key) // like the event of the reconcile's own write
      throw new Error('and then it fails')
    })
    queue.add('a')
    for (let i = 0; i < 50; i++) await turn()
    expect(worked.length).toBeLessThan(6)
    await clock.advance(60_000)
    expect(worked.length).toBeLessThan(60)
    closing.abort()
    await over
  })

  it('limits the retries of all keys to its rate', async () => {
    const { queue, clock, worked, run, closing } = aQueue({
      workers: 100,
      backoff: { baseMs: 1, maxMs: 1 },
      retriesPerSecond: 10,
      retryBurst: 20,
    })
    const over = run(async () => {
      throw new Error('down')
    })
    for (let i = 0; i < 100; i++) queue.add(`k${i}`)
    await turn()
    worked.length = 0
    await clock.advance(10_000)
    await turn()
    expect(worked.length).toBeGreaterThan(80)
    expect(worked.length).toBeLessThanOrEqual(20 + 10 * 10 + 10)
    closing.abort()
    await over
  })

  it('stops on its signal: finishes running keys, starts none, leaves no timer', async () => {
    const { queue, clock, worked, run, closing } = aQueue()
    let end = () => {}
    const over = run(
      () =>
        new Promise((resolve) => {
          end = () => resolve(retryAfter(10, 'again'))
        }),
    )
    queue.add('a')
    queue.add('b')
    await turn()
    let stopped = false
    void over.then(() => {
      stopped = true
    })
    closing.abort()
    await turn()
    expect(stopped).toBe(false)
    end()
    await over
    queue.add('c')
    await clock.advance(60_000)
    expect(worked).toEqual(['a'])
  })

  it('reports adds, waits, work and retries to its observer', async () => {
    const seen: string[] = []
    const observer = {
      added: () => seen.push('added'),
      started: (seconds: number) => seen.push(`started after ${seconds}`),
      finished: (seconds: number) => seen.push(`finished in ${seconds}`),
      retried: () => seen.push('retried'),
    }
    const clock = manualClock()
    const { queue, run, closing } = aQueue({ clock, observer: observer as any })
    queue.add('a')
    await clock.advance(2_000)
    const over = run(async () => {
      await clock.advance(3_000)
      expect(queue.stats()).toMatchObject({ unfinishedSeconds: 3, longestSeconds: 3 })
      return retryAfter(1_000, 'again')
    })
    await turn()
    await turn()
    closing.abort()
    await over
    expect(seen).toEqual(['added', 'started after 2', 'finished in 3', 'retried'])
  })

  it('processes every added key in any interleaving', async () => {
    const action = fc.oneof(
      fc.record({ do: fc.constant('add' as const), key: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ do: fc.constant('addAfter' as const), key: fc.constantFrom('a', 'b', 'c'), ms: fc.nat(500) }),
      fc.record({ do: fc.constant('advance' as const), ms: fc.nat(500) }),
    )
    const outcome = fc.constantFrom<Outcome | Error>(
      done,
      stuck('s'),
      backOff('b'),
      retryAfter(100, 'r'),
      new Error('e'),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 30 }), fc.array(outcome), async (actions, outcomes) => {
        const { queue, clock, run, closing } = aQueue({ workers: 2 })
        const owed = new Map<string, number>()
        const busy = new Set<string>()
        const over = run(async (key) => {
          expect(busy.has(key)).toBe(false)
          busy.add(key)
          owed.delete(key)
          await turn()
          busy.delete(key)
          const next = outcomes.shift() ?? done
          if (next instanceof Error) throw next
          return next
        })
        for (const one of actions) {
          if (one.do === 'advance') await clock.advance(one.ms)
          else {
            owed.set(one.key, 1)
            if (one.do === 'add') queue.add(one.key)
            else queue.addAfter(one.key, one.ms)
          }
        }
        for (let i = 0; owed.size > 0 && i < 200; i++) {
          await clock.advance(100)
          await turn()
        }
        expect([...owed.keys()]).toEqual([])
        closing.abort()
        await over
      }),
      { numRuns: 60 },
    )
  })
})
