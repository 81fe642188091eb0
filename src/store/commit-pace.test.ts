import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { CommitPace, FAST_MS, PAUSE_FACTOR, STALL_MS } from './commit-pace.ts'

function setUp() {
  const clock = manualClock()
  const pace = new CommitPace(clock)
  return { clock, pace, record: (count: number, ms: number) => Array.from({ length: count }, () => pace.record(ms)) }
}

describe('the pace of commits', () => {
  it('is fast while at most 8 of the last 32 commits were slow', () => {
    const { pace, record } = setUp()
    expect(pace.isFast).toBe(true)
    record(8, FAST_MS + 0.1)
    expect(pace.isFast).toBe(true)
    record(1, FAST_MS + 0.1)
    expect(pace.isFast).toBe(false)
    record(23, FAST_MS)
    expect(pace.isFast).toBe(false)
    record(1, FAST_MS)
    expect(pace.isFast).toBe(true)
  })

  it('is not fast on a disk that is always slow', () => {
    const { pace, record } = setUp()
    record(1_000, STALL_MS / 2)
    expect(pace.isFast).toBe(false)
  })

  it.each([STALL_MS, 3_000])('is not fast for 20 times the duration of a commit of %d ms', async (ms) => {
    const { clock, pace } = setUp()
    pace.record(ms)
    expect(pace.isFast).toBe(false)
    await clock.advance(PAUSE_FACTOR * ms - 1)
    expect(pace.isFast).toBe(false)
    await clock.advance(1)
    expect(pace.isFast).toBe(true)
  })
})
