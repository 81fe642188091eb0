import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { done } from '../outcome.ts'
import { createWorkQueue } from '../work-queue.ts'
import { createWorkerBudget, type WorkerBudget } from './worker-budget.ts'

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Joins a queue that takes a worker for each ready key while the budget has one. */
function joinQueue(budget: WorkerBudget) {
  const state = { running: 0, ready: 0 }
  const start = () => {
    while (state.ready > 0 && share.tryTake()) {
      state.ready--
      state.running++
    }
  }
  const share = budget.join(start)
  return {
    state,
    add(count: number) {
      state.ready += count
      start()
    },
    finish() {
      state.running--
      share.release()
      start()
    },
    leave: share.leave,
  }
}

describe('a worker budget', () => {
  it('keeps workers for a queue while another has more keys than workers', () => {
    const budget = createWorkerBudget(8)
    const [claims, attachments] = [joinQueue(budget), joinQueue(budget)]
    claims.add(1_000)
    expect(claims.state.running).toBe(7)
    attachments.add(1)
    expect(attachments.state).toEqual({ running: 1, ready: 0 })
  })

  it('gives a worker that becomes free to the waiting queue with the fewest workers', () => {
    const budget = createWorkerBudget(8)
    const [claims, attachments] = [joinQueue(budget), joinQueue(budget)]
    claims.add(1_000)
    attachments.add(1_000)
    expect([claims.state.running, attachments.state.running]).toEqual([7, 1])
    for (let i = 0; i < 20; i++) claims.finish()
    expect([claims.state.running, attachments.state.running]).toEqual([4, 4])
  })

  it('gives every queue a worker if it has fewer workers than queues', () => {
    const budget = createWorkerBudget(1)
    const queues = [joinQueue(budget), joinQueue(budget), joinQueue(budget)]
    for (const queue of queues) queue.add(2)
    expect(queues.map(({ state }) => state.running)).toEqual([1, 1, 1])
  })

  it('gives a free worker to the queue that has waited longest, among queues with equally many workers', () => {
    const budget = createWorkerBudget(3)
    const queues = [joinQueue(budget), joinQueue(budget)]
    for (const queue of queues) queue.add(9)
    expect(queues.map(({ state }) => state.running)).toEqual([2, 1])
    const busiest: number[] = []
    for (let i = 0; i < 4; i++) {
      const index = queues.findIndex(({ state }) => state.running === 2)
      queues[index]!.finish()
      busiest.push(queues.findIndex(({ state }) => state.running === 2))
    }
    expect(busiest).toEqual([0, 1, 0, 1])
  })

  it('returns the workers of a queue that leaves', () => {
    const budget = createWorkerBudget(4)
    const [firstQueue, secondQueue] = [joinQueue(budget), joinQueue(budget)]
    firstQueue.add(4)
    secondQueue.add(2)
    expect([firstQueue.state.running, secondQueue.state.running]).toEqual([3, 1])
    secondQueue.leave()
    expect(firstQueue.state).toEqual({ running: 4, ready: 0 })
  })

  it('never exceeds the number of workers and leaves none idle while all queues wait, for any sequence of calls', () => {
    const step = fc.record({ queue: fc.nat(2), adds: fc.option(fc.integer({ min: 1, max: 5 })) })
    fc.assert(
      fc.property(fc.integer({ min: 3, max: 12 }), fc.array(step), (workers, steps) => {
        const budget = createWorkerBudget(workers)
        const queues = [joinQueue(budget), joinQueue(budget), joinQueue(budget)]
        for (const { queue: index, adds } of steps) {
          const queue = queues[index]!
          if (adds !== null) queue.add(adds)
          else if (queue.state.running > 0) queue.finish()
          const runningCount = queues.reduce((sum, { state }) => sum + state.running, 0)
          expect(runningCount).toBeLessThanOrEqual(workers)
          if (queues.every(({ state }) => state.ready > 0)) expect(runningCount).toBe(workers)
        }
      }),
    )
  })

  it('limits the total number of workers, and processes the keys of one queue while those of another are blocked', async () => {
    const workerBudget = createWorkerBudget(4)
    const common = { clock: manualClock(), random: () => 0.5, workers: 100, workerBudget }
    const [claims, attachments] = ['claims', 'attachments'].map((name) => createWorkQueue({ ...common, name }))
    const abort = new AbortController()
    let finishClaims = () => {}
    const gate = new Promise<void>((resolve) => {
      finishClaims = resolve
    })
    const waitForGate = async () => {
      await gate
      return done
    }
    const processedKeys: string[] = []
    const runs = [
      claims!.run(waitForGate, abort.signal),
      attachments!.run(async (key) => {
        processedKeys.push(key)
        return done
      }, abort.signal),
    ]
    for (let i = 0; i < 50; i++) claims!.add(`claim-${i}`)
    await nextTurn()
    expect(claims!.stats()).toMatchObject({ running: 3, depth: 47 })
    for (let i = 0; i < 5; i++) attachments!.add(`attachment-${i}`)
    await nextTurn()
    expect(processedKeys).toHaveLength(5)
    finishClaims()
    await nextTurn()
    expect(claims!.isEmpty()).toBe(true)
    abort.abort()
    await Promise.all(runs)
  })
})
