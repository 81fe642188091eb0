import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isExactNumber } from './exact-number.ts'

describe('isExactNumber', () => {
  it.each([
    '0',
    '-0',
    '0.000000000000000000',
    '0e99999999999999999999',
    '007',
    '9007199254740991',
    '-9007199254740991',
    '9007199254740992',
    '10000000000000000',
    '1e22',
    '1E+6',
    '1.50000000000000000000',
    '0.30000000000000004',
    '5e-324',
    '123456789012345',
  ])('accepts %s', (text) => {
    expect(isExactNumber(text)).toBe(true)
  })

  it.each([
    '9007199254740993',
    '-9007199254740993',
    '18446744073709551615',
    '1234567890.123456789',
    '0.1000000000000000055511151231257827',
    '1e400',
    '1e-400',
    '1e99999999999999999999',
  ])('SYS-10 rejects %s', (text) => {
    expect(isExactNumber(text)).toBe(false)
  })

  it('accepts every number that JSON.stringify prints', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(isExactNumber(JSON.stringify(value))).toBe(true)
      }),
    )
  })

  it('rejects a 64-bit integer if and only if parsing and printing it changes its value', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n }), (value) => {
        const isChanged = BigInt(JSON.stringify(Number(value))) !== value
        expect(isExactNumber(String(value))).toBe(!isChanged)
      }),
    )
  })
})
