import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import type { AffectedItems } from './affected-items.ts'
import { createBatches } from './batches.ts'

const at = (name: string): AffectedItems => ({ is: 'class', name })

describe('a batch of changes', () => {
  it('CAP-8 is flushed after a pause, and at the latest a fixed time after its first change', async () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 40, size: 'max' })
    await fc.assert(
      fc.asyncProperty(gaps, async (waits) => {
        const clock = manualClock()
        const flushed: number[] = []
        const batches = createBatches({
          clock,
          quietMs: 100,
          atMostMs: 1_000,
          flush: () => flushed.push(clock.monotonicMs()),
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
          // A change at the moment of the flush starts the next batch.
          if (next < due) continue
          expect(flushed.shift()).toBe(due)
          first = undefined
        }
        expect(flushed).toEqual([])
      }),
      { numRuns: 50 },
    )
  })

  it('CAP-8 concerns one segment and is not delayed by changes of another', async () => {
    const clock = manualClock()
    const flushed: string[] = []
    const flush = (affected: AffectedItems) => flushed.push((affected as { name: string }).name)
    const batches = createBatches({ clock, quietMs: 100, atMostMs: 1_000, flush })
    batches.add(at('quiet'))
    for (let i = 0; i < 10; i++) {
      batches.add(at('busy'))
      await clock.advance(50)
    }
    expect(flushed).toEqual(['quiet'])
    batches.stop()
    await clock.advance(10_000)
    expect(flushed).toEqual(['quiet'])
  })
})
