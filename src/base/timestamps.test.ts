import { expect, it } from 'vitest'
import { microTimestamp, timestamp } from './timestamps.ts'

const NOON_MS = Date.UTC(2030, 0, 2, 12)

it('timestamp formats whole seconds', () => {
  expect(timestamp(NOON_MS + 999)).toBe('2030-01-02T12:00:00Z')
  expect(timestamp(NOON_MS + 1_000)).toBe('2030-01-02T12:00:01Z')
  expect(timestamp(NOON_MS)).toBe('2030-01-02T12:00:00Z')
})

it('microTimestamp formats microseconds', () => {
  expect(microTimestamp(NOON_MS + 7)).toBe('2030-01-02T12:00:00.007000Z')
})

it('timestamp returns the last second of the year 9999 for later times, such as the end of a very long grace period', () => {
  expect(timestamp(1_099_511_627_776_000)).toBe('9999-12-31T23:59:59Z')
})
