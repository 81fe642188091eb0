import { describe, expect, it } from 'vitest'
import { formatCount, formatDuration, formatPercent, formatRate, formatSize } from './units.ts'

describe('units', () => {
  it('formatSize uses binary units', () => {
    const sizes = [0, 512, 1024, 1536, 1_048_575, 10 * 1024 ** 3, -1536, 3 * 1024 ** 6]
    expect(sizes.map(formatSize)).toEqual(['0', '512', '1Ki', '1.5Ki', '1Mi', '10Gi', '-1.5Ki', '3072Pi'])
  })

  it('formatPercent rounds down', () => {
    expect([0, 0.5, 0.999, 1].map(formatPercent)).toEqual(['0%', '50%', '99%', '100%'])
  })

  it('SYS-12 formatRate and formatDuration choose the unit by the amount', () => {
    expect([340, 2.5, 0.04].map(formatRate)).toEqual(['340/s', '2.5/s', '0.04/s'])
    expect([900, 89_000, 100_000, 3_600_000, 7_800_000].map(formatDuration)).toEqual([
      '1 s',
      '89 s',
      '2 min',
      '60 min',
      '2 h 10 min',
    ])
  })

  it('formatCount uses the singular for one', () => {
    expect([0, 1, 2].map((count) => formatCount(count, 'mount'))).toEqual(['0 mounts', '1 mount', '2 mounts'])
    expect(formatCount(2, 'process', 'processes')).toBe('2 processes')
  })
})
