import { describe, expect, it } from 'vitest'
import { manualClock } from '../base/manual-clock.ts'
import { CommitPace, PAUSE_FACTOR, SLOW_MS, STALL_MS } from './commit-pace.ts'

const FAST = SLOW_MS
const SLOW = SLOW_MS + 1

function setUp() {
  const clock = manualClock()
  const pace = new CommitPace(clock)
  const record = (count: number, ms: number) => {
    for (let commit = 0; commit < count; commit++) pace.record(ms)
  }
  return { clock, pace, record }
}

describe('the pace of commits', () => {
  it('allows commits in the event loop while at most 8 of the last 32 commits were slow', () => {
    const { pace, record } = setUp()
    expect(pace.mayBlock).toBe(true)
    for (let round = 0; round < 10; round++) {
      record(8, SLOW)
      record(24, FAST)
    }
    expect(pace.mayBlock).toBe(true)
    record(9, SLOW)
    expect(pace.mayBlock).toBe(false)
  })

  it('allows none for 20 times the duration of a slow commit', async () => {
    const { clock, pace, record } = setUp()
    record(9, SLOW)
    for (let pause = 0; pause < 3; pause++) {
      await clock.advance(PAUSE_FACTOR * SLOW - 1)
      expect(pace.mayBlock).toBe(false)
      await clock.advance(1)
      expect(pace.mayBlock).toBe(true)
      record(1, SLOW)
      expect(pace.mayBlock).toBe(false)
    }
  })

  it('allows them again from the first fast commit after a pause', async () => {
    const { clock, pace, record } = setUp()
    record(20, SLOW)
    await clock.advance(PAUSE_FACTOR * SLOW)
    record(1, FAST)
    expect(pace.mayBlock).toBe(true)
  })

  it.each([STALL_MS, 3_000])('allows none for 20 times the duration of a single commit of %d ms', async (ms) => {
    const { clock, pace } = setUp()
    pace.record(ms)
    await clock.advance(PAUSE_FACTOR * ms - 1)
    expect(pace.mayBlock).toBe(false)
    await clock.advance(1)
    expect(pace.mayBlock).toBe(true)
  })

  it('blocks a slow disk for at most 5 % of the time', async () => {
    const { clock, pace, record } = setUp()
    record(9, 10)
    const startMs = clock.monotonicMs()
    let blockedMs = 0
    for (let commit = 0; commit < 10_000; commit++) {
      if (pace.mayBlock) {
        blockedMs += 10
        await clock.advance(10)
        pace.record(10)
      } else await clock.advance(10)
    }
    expect(blockedMs).toBeGreaterThan(0)
    expect(blockedMs / (clock.monotonicMs() - startMs)).toBeLessThanOrEqual(0.05)
  })
})
