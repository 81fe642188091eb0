import { expect, it } from 'vitest'
import { asSentence, formatSize, withFullStop } from './errors.ts'

it('formatSize adds a unit, withFullStop ends a text with one full stop, and asSentence also capitalizes it', () => {
  expect([0, 777, 300 * 1_048_576].map(formatSize)).toEqual(['0 bytes', '777 bytes', '300Mi'])
  expect(['is limited.', 'is limited', 'is limited..\n'].map(withFullStop)).toEqual(Array(3).fill('is limited.'))
  expect(asSentence('the driver may not')).toBe('The driver may not.')
})
