import { expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { Scrub } from './scrub.ts'

const MIB = 2 ** 20

it('SYS-20 the scrub reads all records at the start, reports damage, and reads them again at its configured rate', async () => {
  const clock = manualClock()
  const damage = { key: 'k/7', revision: 7, reason: 'x' }
  const range = { first: 6, last: 9, reason: 'page 3: x' }
  const reportedRanges: unknown[] = []
  const reportedDamage: unknown[] = []
  const reads: { ms: number; after: number }[] = []
  const startMs = clock.nowMs()
  const scrub = new Scrub({
    clock,
    bytesPerSecond: MIB,
    revision: () => 10,
    report: (foundDamage) => void reportedDamage.push(foundDamage),
    reportRange: (foundRange) => void reportedRanges.push(foundRange),
    verify({ afterRevision }) {
      reads.push({ ms: clock.nowMs() - startMs, after: afterRevision })
      if (afterRevision >= 10) return { lastRevision: undefined, bytes: 0, damagedRecords: [], damagedRanges: [] }
      const isDamaged = afterRevision < 7 && afterRevision + 5 >= 7
      const [damagedRecords, damagedRanges] = isDamaged ? [[damage], [range]] : [[], []]
      return { lastRevision: afterRevision + 5, bytes: MIB, damagedRecords, damagedRanges }
    },
  })
  expect(scrub.stats()).toEqual({ passes: 0, bytes: 0, progress: 0 })
  await clock.advance(100)
  expect(reads.map(({ after }) => after)).toEqual([0, 5, 10])
  expect(reportedDamage).toEqual([damage])
  expect(reportedRanges).toEqual([range])
  expect(scrub.stats()).toEqual({ passes: 1, bytes: 2 * MIB, progress: 0 })

  reads.length = 0
  await clock.advance(62_500)
  const [firstRead, secondRead] = reads
  expect(reads.map(({ after }) => after)).toEqual([0, 5, 10])
  expect(secondRead!.ms - firstRead!.ms).toBe(1_000) // 1 MiB at 1 MiB/s
  expect(scrub.stats().passes).toBe(2)

  scrub.stop()
  reads.length = 0
  await clock.advance(600_000)
  expect(reads).toEqual([])
})
