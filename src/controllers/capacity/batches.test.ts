import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import { createBatches } from './batches.ts'
import type { Place } from './places.ts'

const at = (name: string): Place => ({ is: 'class', name })

describe('a batch of changes', () => {
  it('CAP-8 is flushed after a pause, and at the latest a fixed time after its first change', async () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 40, size: 'max' })
    await fc.assert(
      fc.asyncProperty(gaps, async (waits) => {
        const clock = manualClock()
        const told: number[] = []
        const batches = createBatches({
          clock,
          quietMs: 100,
          atMostMs: 1_000,
          tell: () => told.push(clock.monotonicMs()),
        })
        const changes: number[] = []
        for (const ms of waits) {
          await clock.advance(ms)
          changes.push(clock.monotonicMs())
          batches.add(at('fast'))
        }
        await clock.advance(1_000)
        let first: number | undefined
        for (const [i, change] of changes.entries()) {
          first ??= change
          const next = changes[i + 1] ?? Number.POSITIVE_INFINITY
          const due = Math.min(change + 100, first + 1_000)
          // A change that comes at the very moment of telling begins a batch of its own.
          if (next < due) continue
          expect(told.shift()).toBe(due)
          first = undefined
        }
        expect(told).toEqual([])
      }),
      { numRuns: 50 },
    )
  })

  it('CAP-8 concerns one segment and is not delayed by changes of another', async () => {
    const clock = manualClock()
    const told: string[] = []
    const tell = (place: Place) => told.push((place as { name: string }).name)
    const batches = createBatches({ clock, quietMs: 100, atMostMs: 1_000, tell })
    batches.add(at('quiet'))
    for (let i = 0; i < 10; i++) {
      batches.add(at('busy'))
      await clock.advance(50)
    }
    expect(told).toEqual(['quiet'])
    batches.stop()
    await clock.advance(10_000)
    expect(told).toEqual(['quiet'])
  })
})
