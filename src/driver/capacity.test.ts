import { describe, expect, it } from 'vitest'
import { chooseBytes, describeSizeMismatch } from './capacity.ts'

const MIB = 1_048_576
const GIB = 1_073_741_824
const limits = { minimumBytes: 300 * MIB, subject: 'A volume with xfs' }

describe('chooseBytes', () => {
  it.each([
    ['the requested size', { requiredBytes: 500 * MIB + 1, limitBytes: 0 }, 500 * MIB + 1],
    ['1Gi by default', { requiredBytes: 0, limitBytes: 0 }, GIB],
    ['the limit if that is less', { requiredBytes: 0, limitBytes: 400 * MIB }, 400 * MIB],
  ])('SYS-6 returns %s', (_, range, bytes) => expect(chooseBytes(range, limits)).toBe(bytes))

  it.each([
    { requiredBytes: 1, limitBytes: 0 },
    { requiredBytes: 0, limitBytes: 299 * MIB },
    { requiredBytes: 10 * MIB, limitBytes: GIB },
  ])('SYS-6 rejects %j as too small', (range) => {
    expect(() => chooseBytes(range, limits)).toThrow(
      'A volume with xfs needs at least 300Mi. Request that size or more.',
    )
  })
})

describe('describeSizeMismatch', () => {
  it('SYS-6 returns the difference between an existing volume and the request, if any', () => {
    expect(describeSizeMismatch({ requiredBytes: GIB, limitBytes: 2 * GIB }, GIB)).toBeUndefined()
    expect(describeSizeMismatch({ requiredBytes: GIB, limitBytes: 0 }, 300 * MIB)).toBe(
      'it has 300Mi, and 1Gi is requested',
    )
    expect(describeSizeMismatch({ requiredBytes: 0, limitBytes: GIB }, 2 * GIB)).toBe(
      'it has 2Gi, and at most 1Gi is requested',
    )
  })
})
