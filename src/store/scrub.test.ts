import { expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { Scrub } from './scrub.ts'

const MIB = 2 ** 20

it('SYS-20 reads all records at the start, reports damage, and then reads slowly again', async () => {
  const clock = manualClock()
  const damage = { key: 'k/7', revision: 7, reason: 'x' }
  const range = { first: 6, last: 9, reason: 'page 3: x' }
  const reportedRanges: unknown[] = []
  const reported: unknown[] = []
  const reads: { ms: number; after: number }[] = []
  const startMs = clock.nowMs()
  const scrub = new Scrub({
    clock,
    bytesPerSecond: MIB,
    revision: () => 10,
    report: (found) => void reported.push(found),
    reportRange: (found) => void reportedRanges.push(found),
    verify({ after }) {
      reads.push({ ms: clock.nowMs() - startMs, after })
      if (after >= 10) return { lastRevision: undefined, bytes: 0, damaged: [], damagedRanges: [] }
      const isDamaged = after < 7 && after + 5 >= 7
      const [damaged, damagedRanges] = isDamaged ? [[damage], [range]] : [[], []]
      return { lastRevision: after + 5, bytes: MIB, damaged, damagedRanges }
    },
  })
  expect(scrub.stats()).toEqual({ passes: 0, bytes: 0, progress: 0 })
  await clock.advance(100)
  expect(reads.map(({ after }) => after)).toEqual([0, 5, 10])
  expect(reported).toEqual([damage])
  expect(reportedRanges).toEqual([range])
  expect(scrub.stats()).toEqual({ passes: 1, bytes: 2 * MIB, progress: 0 })

  reads.length = 0
  await clock.advance(62_500)
  const [first, second] = reads
  expect(reads.map(({ after }) => after)).toEqual([0, 5, 10])
  expect(second!.ms - first!.ms).toBe(1_000) // 1 MiB at 1 MiB/s
  expect(scrub.stats().passes).toBe(2)

  scrub.stop()
  reads.length = 0
  await clock.advance(600_000)
  expect(reads).toEqual([])
})
