import { expect, it } from 'vitest'
import { formatAge, formatBytes, formatLatency, formatPercent, formatRate, pluralize } from './format.ts'
import { formatQuantity, readSize } from './quantity.ts'

it.each([
  [0, '0'],
  [512, '512'],
  [1024, '1Ki'],
  [1536 * 1024 ** 2, '1.5Gi'],
  [1024 ** 3 - 1, '1Gi'],
  [123.4 * 1024 ** 3, '123Gi'],
  [5 * 1024 ** 4, '5Ti'],
])('formatBytes writes %d as %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

it('formats counts, shares, rates, latencies and ages', () => {
  expect(pluralize(1, 'claim')).toBe('1 claim')
  expect(pluralize(12_408, 'claim')).toBe('12,408 claims')
  expect(formatPercent(0.004)).toBe('0.4%')
  expect(formatPercent(0.934)).toBe('93%')
  expect(formatRate(0.25)).toBe('0.25/s')
  expect(formatLatency(430.4)).toBe('430ms')
  expect(formatLatency(1_234)).toBe('1.23s')
  expect(formatLatency(200_000)).toBe('3m20s')
  expect(formatAge(0, 5_000)).toBe('5s')
})

it('readSize returns the canonical size, or the reason why the text is not a size', () => {
  expect(readSize(' 0.5Gi ')).toEqual({ size: '512Mi', bytes: 512 * 1024 ** 2 })
  expect(readSize('20 GB')).toHaveProperty('problem')
  expect(readSize('')).toHaveProperty('problem')
  expect(readSize('0')).toHaveProperty('problem')
  expect(formatQuantity(1610612736)).toBe('1536Mi')
})
