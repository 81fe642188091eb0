import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { manualClock } from '../../base/manual-clock.ts'
import type { AffectedItems } from './affected-items.ts'
import { createBatches } from './batches.ts'

const itemsOfClass = (name: string): AffectedItems => ({ is: 'class', name })

describe('createBatches', () => {
  it('CAP-8 flushes a batch after a pause, and at the latest a fixed time after its first change', async () => {
    const gapList = fc.array(fc.integer({ min: 0, max: 150 }), { minLength: 1, maxLength: 40, size: 'max' })
    await fc.assert(
      fc.asyncProperty(gapList, async (gapsMs) => {
        const clock = manualClock()
        const flushTimes: number[] = []
        const batches = createBatches({
          clock,
          quietMs: 100,
          maxDelayMs: 1_000,
          flush: () => flushTimes.push(clock.monotonicMs()),
        })
        const changes: number[] = []
        for (const ms of gapsMs) {
          await clock.advance(ms)
          changes.push(clock.monotonicMs())
          batches.add(itemsOfClass('fast'))
        }
        await clock.advance(1_000)
        let firstChange: number | undefined
        for (const [i, change] of changes.entries()) {
          firstChange ??= change
          const nextChange = changes[i + 1] ?? Number.POSITIVE_INFINITY
          const flushTime = Math.min(change + 100, firstChange + 1_000)
          // A change at the time of the flush starts the next batch.
          if (nextChange < flushTime) continue
          expect(flushTimes.shift()).toBe(flushTime)
          firstChange = undefined
        }
        expect(flushTimes).toEqual([])
      }),
      { numRuns: 50 },
    )
  })

  it('CAP-8 does not delay a batch because of changes to other items', async () => {
    const clock = manualClock()
    const flushedClasses: string[] = []
    const flush = (affected: AffectedItems) => flushedClasses.push((affected as { name: string }).name)
    const batches = createBatches({ clock, quietMs: 100, maxDelayMs: 1_000, flush })
    batches.add(itemsOfClass('quiet'))
    for (let i = 0; i < 10; i++) {
      batches.add(itemsOfClass('busy'))
      await clock.advance(50)
    }
    expect(flushedClasses).toEqual(['quiet'])
    batches.stop()
    await clock.advance(10_000)
    expect(flushedClasses).toEqual(['quiet'])
  })
})
