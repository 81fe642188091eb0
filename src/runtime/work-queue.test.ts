import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ApiError } from '../api/status-error.ts'
import { type ManualClock, manualClock } from '../base/manual-clock.ts'
import { backOff, done, type Outcome, retryAfter, stuck } from './outcome.ts'
import { createWorkQueue, SILENT_LANE_FAILURES, type WorkQueueOptions } from './work-queue.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Creates a queue whose reconciles return the `outcomes` in order, and then done. */
function createHarness(options: Partial<WorkQueueOptions> = {}) {
  const clock: ManualClock = manualClock()
  const queue = createWorkQueue({ name: 'test', clock, random: () => 1, workers: 1, ...options })
  const processedKeys: string[] = []
  const abort = new AbortController()
  const outcomes: (Outcome | Error)[] = []
  const run = (reconcile?: (key: string) => Promise<Outcome>) =>
    queue.run(async (key) => {
      processedKeys.push(key)
      if (reconcile) return reconcile(key)
      const outcome = outcomes.shift() ?? done
      if (outcome instanceof Error) throw outcome
      return outcome
    }, abort.signal)
  return { clock, queue, processedKeys, outcomes, run, abort }
}

describe('a work queue', () => {
  it('processes a key once if it was added several times', async () => {
    const { queue, processedKeys, run, abort } = createHarness()
    for (const key of ['a', 'b', 'a', 'a']) queue.add(key)
    const queueRun = run()
    await nextTurn()
    expect(processedKeys).toEqual(['a', 'b'])
    expect(queue.states()).toEqual([])
    abort.abort()
    await queueRun
  })

  it('does not process a key twice at the same time, and processes it again if it was added during processing', async () => {
    const { queue, processedKeys, run, abort } = createHarness({ workers: 4 })
    const finishes: (() => void)[] = []
    const queueRun = run(() => new Promise((resolve) => finishes.push(() => resolve(done))))
    queue.add('a')
    await nextTurn()
    queue.add('a')
    queue.add('b')
    await nextTurn()
    expect(processedKeys).toEqual(['a', 'b'])
    finishes[0]!()
    await nextTurn()
    expect(processedKeys).toEqual(['a', 'b', 'a'])
    for (const finish of finishes) finish()
    abort.abort()
    await queueRun
  })

  describe('with settled keys', () => {
    it('neither queues nor processes them', async () => {
      const settledKeys = new Set(['a'])
      const { queue, processedKeys, run, abort } = createHarness({ isSettled: (key) => settledKeys.has(key) })
      queue.add('a')
      expect(queue.has('a')).toBe(false)
      queue.add('b')
      queue.add('c')
      settledKeys.add('b') // by another change of the same commit
      const queueRun = run()
      await nextTurn()
      expect(processedKeys).toEqual(['c'])
      expect(queue.isEmpty()).toBe(true)
      settledKeys.clear()
      queue.add('a')
      await nextTurn()
      expect(processedKeys).toEqual(['c', 'a'])
      abort.abort()
      await queueRun
    })

    it('does not process a key again that its own reconcile has added and settled', async () => {
      const changes: string[] = []
      let isSettled = false
      const { queue, processedKeys, run, abort } = createHarness({
        isSettled: () => isSettled,
        onChange: (key) => changes.push(`${key} ${queue.stateOf(key)?.is}`),
      })
      queue.add('a')
      const queueRun = run(async () => {
        queue.add('a')
        isSettled = true
        return done
      })
      await nextTurn()
      expect(processedKeys).toEqual(['a'])
      expect(queue.isEmpty()).toBe(true)
      expect(changes.at(-1)).toBe('a undefined')
      abort.abort()
      await queueRun
    })

    it('processes a settled key whose last reconcile returned a reason, so that the reason is removed', async () => {
      let isSettled = false
      const { queue, processedKeys, outcomes, run, abort, clock } = createHarness({ isSettled: () => isSettled })
      outcomes.push(stuck('waiting for a volume'), retryAfter(1_000, 'later'))
      queue.add('a')
      queue.add('b')
      const queueRun = run()
      await nextTurn()
      isSettled = true
      queue.add('a')
      await clock.advance(1_000)
      await nextTurn()
      expect(processedKeys).toEqual(['a', 'b', 'a', 'b'])
      expect(queue.states()).toEqual([])
      abort.abort()
      await queueRun
    })
  })

  it('lets other work run between many reconciles that wait for nothing', async () => {
    const { queue, processedKeys, run, abort } = createHarness({ workers: 10 })
    for (let number = 0; number < 1_000; number++) queue.add(`key-${number}`)
    const queueRun = run()
    const counts: number[] = []
    do {
      await nextTurn()
      counts.push(processedKeys.length)
    } while (processedKeys.length < 1_000)
    const steps = counts.map((count, turn) => count - (counts[turn - 1] ?? 0))
    expect(Math.max(...steps)).toBeLessThanOrEqual(200)
    abort.abort()
    await queueRun
  })

  it('processes at most as many keys concurrently as it has workers', async () => {
    const { queue, run, abort } = createHarness({ workers: 3 })
    let finish = () => {}
    const gate = new Promise<void>((resolve) => {
      finish = resolve
    })
    const queueRun = run(async () => {
      await gate
      return done
    })
    for (let i = 0; i < 10; i++) queue.add(`k${i}`)
    await nextTurn()
    expect(queue.stats()).toMatchObject({ running: 3, depth: 7 })
    finish()
    await nextTurn()
    expect(queue.stats()).toMatchObject({ running: 0, depth: 0 })
    abort.abort()
    await queueRun
  })

  it('doubles the delay after every failure up to a bound, and resets it after a success', async () => {
    const { queue, clock, processedKeys, outcomes, run, abort } = createHarness({
      backoff: { baseMs: 100, maxMs: 400 },
    })
    outcomes.push(new Error('1'), new Error('2'), backOff('3'), new Error('4'), done, new Error('5'))
    const queueRun = run()
    queue.add('a')
    await nextTurn()
    const delaysMs: number[] = []
    for (let attempt = 1; attempt < 5; attempt++) {
      const { nextAtMs = 0 } = queue.stateOf('a')!
      delaysMs.push(nextAtMs - clock.nowMs())
      await clock.advance(nextAtMs - clock.nowMs())
      await nextTurn()
    }
    expect(delaysMs).toEqual([100, 200, 400, 400])
    expect(processedKeys.length).toBe(5)
    expect(queue.stateOf('a')).toBeUndefined()
    queue.add('a')
    await nextTurn()
    expect(queue.stateOf('a')!.nextAtMs! - clock.nowMs()).toBe(100)
    abort.abort()
    await queueRun
  })

  it('reports why each key waits and when it is retried', async () => {
    const { queue, clock, outcomes, run, abort } = createHarness()
    outcomes.push(retryAfter(5_000, 'the driver is busy'), stuck('class "fast" is missing'), new Error('boom'))
    const queueRun = run()
    for (const key of ['a', 'b', 'c']) queue.add(key)
    await nextTurn()
    const nowMs = clock.nowMs()
    const common = { attempts: 1, addedAtMs: nowMs, lastAttemptAtMs: nowMs, isRoutine: false }
    expect(queue.states()).toEqual([
      {
        ...common,
        ...{ key: 'a', is: 'waiting', message: 'the driver is busy', nextAtMs: nowMs + 5_000 },
        ...{ failures: 0, isRetry: false },
      },
      { ...common, key: 'c', is: 'waiting', message: 'boom', nextAtMs: nowMs + 50, failures: 1, isRetry: true },
      { ...common, key: 'b', is: 'stuck', message: 'class "fast" is missing', failures: 0, isRetry: false },
    ])
    abort.abort()
    await queueRun
  })

  it('PLUS-15 retries a waiting key immediately on request, and resets its backoff', async () => {
    const { queue, clock, processedKeys, outcomes, run, abort } = createHarness()
    outcomes.push(backOff('1'), backOff('2'), backOff('3'), backOff('4'))
    const queueRun = run()
    queue.add('a')
    await nextTurn()
    await clock.advance(50)
    await clock.advance(100)
    expect(queue.stateOf('a')).toMatchObject({ failures: 3, attempts: 3, nextAtMs: clock.nowMs() + 200 })
    queue.retryNow('a')
    await nextTurn()
    expect(queue.stateOf('a')).toMatchObject({ failures: 1, attempts: 4, nextAtMs: clock.nowMs() + 50 })
    queue.retryNow('unknown')
    await nextTurn()
    expect(processedKeys).toEqual(['a', 'a', 'a', 'a'])
    abort.abort()
    await queueRun
  })

  it('PLUS-15 retries on request a key that waits for a missing permission', async () => {
    const { queue, processedKeys, outcomes, run, abort } = createHarness()
    outcomes.push(new ApiError(403, 'Forbidden', 'User "x" cannot patch resource "pods" in API group ""'))
    const queueRun = run()
    queue.add('a')
    await nextTurn()
    expect(queue.stateOf('a')).toMatchObject({ isRetry: true, details: { reason: 'Forbidden' } })
    queue.add('a')
    await nextTurn()
    expect(processedKeys).toEqual(['a'])
    queue.retryNow('a')
    await nextTurn()
    expect(processedKeys).toEqual(['a', 'a'])
    abort.abort()
    await queueRun
  })

  it('does not retry a stuck key until it is added again', async () => {
    const { queue, clock, processedKeys, outcomes, run, abort } = createHarness()
    outcomes.push(stuck('waiting for a class'))
    const queueRun = run()
    queue.add('a')
    await nextTurn()
    await clock.advance(24 * 3_600_000)
    await nextTurn()
    expect(processedKeys).toEqual(['a'])
    queue.add('a')
    await nextTurn()
    expect(processedKeys).toEqual(['a', 'a'])
    abort.abort()
    await queueRun
  })

  it('processes a waiting key when it is added, and uses the earliest of several delays', async () => {
    const { queue, clock, processedKeys, outcomes, run, abort } = createHarness()
    outcomes.push(retryAfter(60_000, 'later'))
    const queueRun = run()
    queue.add('a')
    await nextTurn()
    queue.add('a') // as after a change to its object
    await nextTurn()
    expect(processedKeys).toEqual(['a', 'a'])
    queue.addAfter('b', 1_000)
    queue.addAfter('b', 9_000)
    queue.addAfter('b', 500)
    await clock.advance(499)
    await nextTurn()
    expect(processedKeys).toEqual(['a', 'a'])
    await clock.advance(1)
    await nextTurn()
    await clock.advance(20_000)
    await nextTurn()
    expect(processedKeys).toEqual(['a', 'a', 'b'])
    abort.abort()
    await queueRun
  })

  it('backs off a key whose failing reconcile adds it again', async () => {
    const { queue, clock, processedKeys, run, abort } = createHarness()
    const queueRun = run(async (key) => {
      queue.add(key) // as after a write of the reconcile itself
      throw new Error('injected')
    })
    queue.add('a')
    for (let i = 0; i < 50; i++) await nextTurn()
    expect(processedKeys.length).toBeLessThan(6)
    await clock.advance(60_000)
    expect(processedKeys.length).toBeLessThan(60)
    abort.abort()
    await queueRun
  })

  it('limits the total rate of retries', async () => {
    const { queue, clock, processedKeys, run, abort } = createHarness({
      workers: 100,
      backoff: { baseMs: 1, maxMs: 1 },
      retriesPerSecond: 10,
      retryBurst: 20,
    })
    const queueRun = run(async () => {
      throw new Error('down')
    })
    for (let i = 0; i < 100; i++) queue.add(`k${i}`)
    await nextTurn()
    processedKeys.length = 0
    await clock.advance(10_000)
    await nextTurn()
    expect(processedKeys.length).toBeGreaterThan(80)
    expect(processedKeys.length).toBeLessThanOrEqual(20 + 10 * 10 + 10)
    abort.abort()
    await queueRun
  })

  it('finishes running keys and starts no others after the signal is aborted', async () => {
    const { queue, clock, processedKeys, run, abort } = createHarness()
    let finish = () => {}
    const queueRun = run(
      () =>
        new Promise((resolve) => {
          finish = () => resolve(retryAfter(10, 'again'))
        }),
    )
    queue.add('a')
    queue.add('b')
    await nextTurn()
    let hasStopped = false
    void queueRun.then(() => {
      hasStopped = true
    })
    abort.abort()
    await nextTurn()
    expect(hasStopped).toBe(false)
    finish()
    await queueRun
    queue.add('c')
    await clock.advance(60_000)
    expect(processedKeys).toEqual(['a'])
  })

  it('reports adds, starts, ends and retries to its observer', async () => {
    const observations: string[] = []
    const observer = {
      added: () => observations.push('added'),
      started: (seconds: number) => observations.push(`started after ${seconds}`),
      finished: (seconds: number) => observations.push(`finished in ${seconds}`),
      retried: () => observations.push('retried'),
    }
    const clock = manualClock()
    const { queue, run, abort } = createHarness({ clock, observer: observer as any })
    queue.add('a')
    await clock.advance(2_000)
    const queueRun = run(async () => {
      await clock.advance(3_000)
      expect(queue.stats()).toMatchObject({ unfinishedSeconds: 3, longestSeconds: 3 })
      return retryAfter(1_000, 'again')
    })
    await nextTurn()
    await nextTurn()
    abort.abort()
    await queueRun
    expect(observations).toEqual(['added', 'started after 2', 'finished in 3', 'retried'])
  })

  const DEAD_KEYS = Array.from({ length: 1_000 }, (_, index) => `dead-${index}`)
  const never = new Promise<Outcome>(() => {})

  it('PLUS-11 leaves half of the workers to other lanes, even if 1,000 keys of a lost node never end', async () => {
    const laneOf = (key: string) => (key.startsWith('dead') ? 'node-1' : undefined)
    const { queue, processedKeys, run } = createHarness({ workers: 10, laneOf })
    void run((key) => (key.startsWith('dead') ? never : Promise.resolve(done)))
    for (const key of DEAD_KEYS) queue.add(key)
    await nextTurn()
    expect(queue.stats()).toMatchObject({ running: 5, depth: 995 })
    for (let index = 0; index < 20; index++) queue.add(`live-${index}`)
    await nextTurn()
    expect(processedKeys.filter((key) => key.startsWith('live'))).toHaveLength(20)
    expect(queue.stats()).toMatchObject({ running: 5, depth: 995 })
  })

  it('PLUS-11 leaves half of the workers to keys that do not fail, even if 1,000 retries never end', async () => {
    const { clock, queue, processedKeys, run } = createHarness({ workers: 10, retriesPerSecond: 1_000 })
    const failedKeys = new Set<string>()
    void run(async (key) => {
      if (!key.startsWith('dead')) return done
      if (failedKeys.has(key)) return never
      failedKeys.add(key)
      return backOff('the driver does not respond')
    })
    for (const key of DEAD_KEYS) queue.add(key)
    await nextTurn()
    await clock.advance(600_000)
    await nextTurn()
    expect(queue.stats()).toMatchObject({ running: 5, depth: 995, waiting: 0 })
    queue.add('live')
    await nextTurn()
    expect(processedKeys.at(-1)).toBe('live')
  })

  it('PLUS-11 processes the waiting keys of a lane when its keys end', async () => {
    const { queue, processedKeys, run } = createHarness({ workers: 4, laneOf: () => 'node-1' })
    const finishes: (() => void)[] = []
    void run(() => new Promise((resolve) => finishes.push(() => resolve(done))))
    for (const key of DEAD_KEYS.slice(0, 10)) queue.add(key)
    for (let turn = 0; turn < 20; turn++) {
      await nextTurn()
      expect(queue.stats().running).toBeLessThanOrEqual(2)
      finishes.shift()?.()
    }
    expect(processedKeys).toEqual(DEAD_KEYS.slice(0, 10))
    expect(queue.stats()).toMatchObject({ running: 0, depth: 0 })
  })

  describe('whose lane is a silent node', () => {
    const failure = backOff('the node does not respond', { isFailure: true })

    /** The node `node-1` is silent until it is resumed. All keys of it fail while `isFailing`. */
    function createSilentHarness(options: Partial<WorkQueueOptions> = {}) {
      const state = { isSilent: true, isFailing: true }
      const listeners = new Set<(lane: string) => void>()
      const harness = createHarness({
        workers: 10,
        retriesPerSecond: 1_000,
        laneOf: (key) => (key.startsWith('dead') ? 'node-1' : 'node-2'),
        silentLanes: {
          has: (lane) => lane === 'node-1' && state.isSilent,
          onReturn: (listener) => {
            listeners.add(listener)
            return () => listeners.delete(listener)
          },
        },
        ...options,
      })
      const calls: string[] = []
      const start = () =>
        harness.run(async (key) => {
          if (!key.startsWith('dead')) return done
          calls.push(key)
          await nextTurn()
          return state.isFailing ? failure : done
        })
      const advance = async (ms: number) => {
        for (let passedMs = 0; passedMs < ms; passedMs += 100) {
          await harness.clock.advance(100)
          await nextTurn()
          await nextTurn()
        }
      }
      const settle = async () => {
        for (let turn = 0; turn < 1_000; turn++) await nextTurn()
      }
      const announceReturn = () => {
        state.isSilent = false
        for (const listener of listeners) listener('node-1')
      }
      return { ...harness, state, calls, start, advance, settle, announceReturn, listeners }
    }

    /** Starts a queue whose 1,000 dead keys have had so many calls that they wait for their turn. */
    async function startWithDeadKeys(options: Partial<WorkQueueOptions> = {}) {
      const harness = createSilentHarness(options)
      void harness.start()
      for (const key of DEAD_KEYS) harness.queue.add(key)
      await harness.settle()
      return harness
    }

    it('PLUS-11 makes one call per second after several have failed, with another key each time', async () => {
      const { queue, calls, advance } = await startWithDeadKeys()
      // Those that were running when the last of these failed have been called too.
      expect(calls.length).toBeGreaterThanOrEqual(SILENT_LANE_FAILURES)
      expect(calls.length).toBeLessThan(SILENT_LANE_FAILURES + 5)
      const firstCount = calls.length
      await advance(60_000)
      expect(calls.length - firstCount).toBeGreaterThanOrEqual(59)
      expect(calls.length - firstCount).toBeLessThanOrEqual(60)
      expect(new Set(calls).size).toBe(calls.length)
      expect(queue.stateOf('dead-999')).toMatchObject({
        is: 'ready',
        message: `node-1 does not respond and ${calls.length} attempts for it have failed in a row: one attempt per second is made until one succeeds`,
      })
      queue.add('live')
      await nextTurn()
      expect(queue.has('live')).toBe(false)
    })

    it('PLUS-11 processes all keys at once when a call succeeds', async () => {
      const { queue, calls, state, advance, settle } = await startWithDeadKeys()
      await advance(10_000)
      const failedCount = calls.length
      state.isFailing = false
      await advance(1_000)
      await settle()
      expect(queue.isEmpty()).toBe(true)
      expect(calls.length - failedCount).toBe(1_000)
    })

    it('PLUS-11 processes all keys at once when the node has returned, even those that wait for a retry', async () => {
      const { queue, calls, state, advance, settle, announceReturn } = await startWithDeadKeys()
      await advance(10_000)
      const failedCount = calls.length
      state.isFailing = false
      announceReturn()
      await settle()
      expect(queue.isEmpty()).toBe(true)
      expect(calls.length - failedCount).toBe(1_000)
    })

    it('PLUS-11 makes no fewer calls for a node that reports', async () => {
      const harness = createSilentHarness()
      harness.state.isSilent = false
      void harness.start()
      for (const key of DEAD_KEYS) harness.queue.add(key)
      await harness.settle()
      expect(new Set(harness.calls).size).toBe(1_000)
    })

    it('PLUS-11 makes the calls of a silent node without delay as long as they succeed', async () => {
      const harness = createSilentHarness()
      harness.state.isFailing = false
      void harness.start()
      for (const key of DEAD_KEYS) harness.queue.add(key)
      await harness.settle()
      expect(harness.queue.isEmpty()).toBe(true)
    })

    it('PLUS-15 retries a key on request before its turn', async () => {
      const { queue, calls, advance } = await startWithDeadKeys()
      queue.retryNow('dead-999')
      await nextTurn()
      await nextTurn()
      expect(calls.at(-1)).toBe('dead-999')
      queue.retryNow('dead-999') // it waits for its backoff now
      await nextTurn()
      expect(calls.filter((key) => key === 'dead-999')).toHaveLength(2)
      await advance(990_000)
      expect(new Set(calls).size).toBe(1_000)
      expect(queue.stats()).toMatchObject({ running: 0 })
    })

    it('PLUS-11 starts the calls that hang one second apart, until they have half of the workers', async () => {
      const { queue, advance, run } = createSilentHarness()
      const finishes: (() => void)[] = []
      let callCount = 0
      void run(() => {
        callCount++
        return callCount <= SILENT_LANE_FAILURES
          ? Promise.resolve(failure)
          : new Promise((resolve) => finishes.push(() => resolve(failure)))
      })
      for (const key of DEAD_KEYS) queue.add(key)
      await nextTurn()
      expect(callCount).toBeLessThan(SILENT_LANE_FAILURES + 5)
      await advance(30_000)
      expect(queue.stats().running).toBe(5)
      const hangingCount = callCount
      for (const finish of finishes.splice(0)) finish()
      await nextTurn()
      expect(callCount).toBe(hangingCount + 1)
      await advance(2_000)
      expect(callCount).toBe(hangingCount + 3)
    })

    it('makes no calls and has no subscription after it has stopped', async () => {
      const { abort, calls, listeners, settle, advance } = await startWithDeadKeys()
      expect(listeners.size).toBe(1)
      abort.abort()
      await settle()
      expect(listeners.size).toBe(0)
      const callCount = calls.length
      await advance(10_000)
      expect(calls).toHaveLength(callCount)
    })
  })

  it('processes every added key, and no key twice at the same time, for any sequence of calls and outcomes', async () => {
    const action = fc.oneof(
      fc.record({ do: fc.constant('add' as const), key: fc.constantFrom('a', 'b', 'c') }),
      fc.record({ do: fc.constant('addAfter' as const), key: fc.constantFrom('a', 'b', 'c'), ms: fc.nat(500) }),
      fc.record({ do: fc.constant('advance' as const), ms: fc.nat(500) }),
    )
    const outcome = fc.constantFrom<Outcome | Error>(
      done,
      stuck('s'),
      backOff('b'),
      backOff('d', { isFailure: true }),
      retryAfter(100, 'r'),
      new Error('e'),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 30 }), fc.array(outcome), async (actions, outcomes) => {
        const laneOf = (key: string) => (key === 'c' ? undefined : 'node-1')
        const silentLanes = { has: () => true, onReturn: () => () => {} }
        const { queue, clock, run, abort } = createHarness({ workers: 2, laneOf, silentLanes })
        const expectedKeys = new Set<string>()
        const busyKeys = new Set<string>()
        const queueRun = run(async (key) => {
          expect(busyKeys.has(key)).toBe(false)
          busyKeys.add(key)
          expectedKeys.delete(key)
          await nextTurn()
          busyKeys.delete(key)
          const next = outcomes.shift() ?? done
          if (next instanceof Error) throw next
          return next
        })
        for (const step of actions) {
          if (step.do === 'advance') await clock.advance(step.ms)
          else {
            expectedKeys.add(step.key)
            if (step.do === 'add') queue.add(step.key)
            else queue.addAfter(step.key, step.ms)
          }
        }
        for (let i = 0; expectedKeys.size > 0 && i < 200; i++) {
          await clock.advance(100)
          await nextTurn()
        }
        expect([...expectedKeys.keys()]).toEqual([])
        abort.abort()
        await queueRun
      }),
      { numRuns: 60 },
    )
  })
})
