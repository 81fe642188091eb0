import { describe, expect, it } from 'vitest'
import { chooseBytes, describeSizeMismatch } from './capacity.ts'

const MIB = 1_048_576
const GIB = 1_073_741_824
const rules = { minimumBytes: 300 * MIB, subject: 'A volume with xfs' }

describe('chooseBytes', () => {
  it.each([
    ['the requested size', { requiredBytes: 500 * MIB + 1, limitBytes: 0 }, 500 * MIB + 1],
    ['1Gi by default', { requiredBytes: 0, limitBytes: 0 }, GIB],
    ['the limit if that is less', { requiredBytes: 0, limitBytes: 400 * MIB }, 400 * MIB],
    ['the minimum for a smaller request', { requiredBytes: 128 * MIB, limitBytes: 0 }, 300 * MIB],
    ['the minimum for a smaller request below the limit', { requiredBytes: 1, limitBytes: GIB }, 300 * MIB],
    ['the minimum if it equals the limit', { requiredBytes: 128 * MIB, limitBytes: 300 * MIB }, 300 * MIB],
  ])('returns %s', (_, range, bytes) => expect(chooseBytes(range, rules)).toBe(bytes))

  it.each([
    { requiredBytes: 0, limitBytes: 299 * MIB },
    { requiredBytes: 10 * MIB, limitBytes: 299 * MIB },
  ])('rejects a limit below the minimum: %j', (range) => {
    expect(() => chooseBytes(range, rules)).toThrow(
      'A volume with xfs needs at least 300Mi, but limit_bytes is 299Mi. Raise or omit the limit.',
    )
  })

  it('rejects a copy that is smaller than its source, and rounds a copy up to the minimum', () => {
    const copy = { ...rules, sourceBytes: 400 * MIB, subject: 'A copy of 400Mi' }
    expect(() => chooseBytes({ requiredBytes: 350 * MIB, limitBytes: 0 }, copy)).toThrow(
      'A copy of 400Mi needs at least 400Mi. Request that size or more.',
    )
    const smallSource = { ...rules, sourceBytes: 100 * MIB }
    expect(chooseBytes({ requiredBytes: 100 * MIB, limitBytes: 0 }, smallSource)).toBe(300 * MIB)
    const sameRequest = { ...rules, sourceBytes: 300 * MIB } // its source was rounded up too
    expect(chooseBytes({ requiredBytes: 100 * MIB, limitBytes: 0 }, sameRequest)).toBe(300 * MIB)
  })
})

describe('describeSizeMismatch', () => {
  it('returns the difference between an existing volume and the request, if any', () => {
    expect(describeSizeMismatch({ requiredBytes: GIB, limitBytes: 2 * GIB }, GIB)).toBeUndefined()
    expect(describeSizeMismatch({ requiredBytes: GIB, limitBytes: 0 }, 300 * MIB)).toBe(
      'it has 300Mi, but 1Gi is requested',
    )
    expect(describeSizeMismatch({ requiredBytes: 0, limitBytes: GIB }, 2 * GIB)).toBe(
      'it has 2Gi, but at most 1Gi is requested',
    )
  })
})
