import { describe, expect, it } from 'vitest'
import { createUsageHistory, USAGE_HISTORIES_MAX, USAGE_SAMPLES_MAX } from './usage-history.ts'

const HOUR_MS = 3_600_000

describe('usage history', () => {
  it('returns the growth per day after an hour', () => {
    const history = createUsageHistory()
    expect(history.add('a', { timeMs: 0, usedBytes: 1_000 })).toBe(undefined)
    expect(history.add('a', { timeMs: HOUR_MS - 1, usedBytes: 2_000 })).toBe(undefined)
    expect(history.add('a', { timeMs: HOUR_MS, usedBytes: 2_000 })).toBe(24_000)
    expect(history.add('a', { timeMs: 2 * HOUR_MS, usedBytes: 0 })).toBe(-12_000)
    expect(history.add('b', { timeMs: 2 * HOUR_MS, usedBytes: 5 })).toBe(undefined)
  })

  it('compares with the oldest sample of the last week', () => {
    const history = createUsageHistory()
    history.add('a', { timeMs: 0, usedBytes: 1_000_000 })
    let growth: number | undefined
    for (let hour = 1; hour <= USAGE_SAMPLES_MAX; hour++)
      growth = history.add('a', { timeMs: hour * HOUR_MS, usedBytes: hour })
    expect(growth).toBeCloseTo(24)
  })

  it('drops the least recently sampled volume', () => {
    const history = createUsageHistory()
    for (let index = 0; index <= USAGE_HISTORIES_MAX; index++)
      history.add(`volume-${index}`, { timeMs: 0, usedBytes: 0 })
    expect(history.add('volume-1', { timeMs: HOUR_MS, usedBytes: 1 })).toBe(24)
    expect(history.add('volume-0', { timeMs: HOUR_MS, usedBytes: 1 })).toBe(undefined)
  })
})
