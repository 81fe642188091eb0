import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  isIntegerQuantity,
  isQuantity,
  parseQuantity,
  quantityFromBytes,
  quantitySign,
  quantityToBytes,
  subtractQuantities,
} from './quantity.ts'

describe('canonicalQuantity', () => {
  it.each([
    // the largest suffix with an integer mantissa
    ['1000M', '1G'],
    ['160000', '160k'],
    ['1234567M', '1234567M'],
    ['0.001T', '1G'],
    ['1024', '1024'],
    ['1024Mi', '1Gi'],
    ['307200Ki', '300Mi'],
    ['1025024Mi', '1001Gi'],
    // fractions move to a smaller suffix
    ['1.5', '1500m'],
    ['0.5', '500m'],
    ['1.08', '1080m'],
    ['0.5Gi', '512Mi'],
    ['1.5Gi', '1536Mi'],
    ['0.5Mi', '512Ki'],
    ['.0001k', '100m'],
    // binary below 1024, or with a fraction, is formatted as decimal
    ['0.5Ki', '512'],
    ['100.035Ki', '102435840m'],
    ['0.05Gi', '53687091200m'],
    // exponents stay exponents, in steps of three
    ['1e3', '1e3'],
    ['1e14', '100e12'],
    ['.001e12', '1e9'],
    ['0.001e0', '1e-3'],
    ['1000e-12', '1e-9'],
    ['1e1000', '10e999'],
    // zero has neither sign nor suffix
    ['0Gi', '0'],
    ['-0', '0'],
    ['00', '0'],
    ['0e5', '0'],
    // amounts finer than a billionth are rounded away from zero
    ['0.0000000001', '1n'],
    ['3.001n', '4n'],
    ['-3.001n', '-4n'],
    ['0.00000012345', '124n'],
    ['0.000000000001Ki', '2n'],
    ['1e-1000', '1e-9'],
    // binary amounts stop at 2^63-1, decimal ones have no limit
    ['9Ei', '9223372036854775807'],
    ['-9Ei', '-9223372036854775807'],
    ['9223372036854775807Ki', '9223372036854775807'],
    ['12E', '12E'],
    ['1000E', '1000E'],
    // texts that are already canonical
    ['1.125', '1.125'],
    ['1.500', '1.500'],
    ['1E6', '1E6'],
    ['+3Gi', '+3Gi'],
    ['007Mi', '007Mi'],
    ['1.G', '1.G'],
    // similar texts that are not canonical
    ['0.500', '500m'],
    ['1E5', '100e3'],
    ['+2048Ki', '2Mi'],
    ['+5Pi', '5Pi'],
    // spaces around a quantity are allowed
    [' 1Gi  ', '1Gi'],
  ])('formats %j as %j', (value, canonical) => {
    expect(canonicalQuantity(value)).toBe(canonical)
  })

  it('accepts bare numbers', () => {
    expect(canonicalQuantity(1000)).toBe('1k')
    expect(canonicalQuantity(0.1)).toBe('100m')
    expect(canonicalQuantity(1e21)).toBe('1e21')
  })

  it('is idempotent', () => {
    fc.assert(
      fc.property(anyQuantity, (text) => {
        const canonical = canonicalQuantity(text)
        expect(canonicalQuantity(canonical)).toBe(canonical)
      }),
    )
  })

  it('keeps the amount', () => {
    fc.assert(fc.property(anyQuantity, (text) => compareQuantities(canonicalQuantity(text), text) === 0))
  })
})

describe('parseQuantity', () => {
  const SYNTAX_ERROR = /^quantities must match the regular expression '/
  const NUMBER_ERROR = /^unable to parse numeric part of quantity$/
  const SUFFIX_ERROR = /^unable to parse quantity's suffix$/
  it.each([
    ['', SYNTAX_ERROR],
    ['Gi', SYNTAX_ERROR],
    ['+', SYNTAX_ERROR],
    ['aoeu', SYNTAX_ERROR],
    ['1.1.M', SYNTAX_ERROR],
    ['1+1.0M', SYNTAX_ERROR],
    ['1 Gi', SYNTAX_ERROR],
    ['1Gi\n', SYNTAX_ERROR],
    ['\t1Gi', SYNTAX_ERROR],
    ['1Gi\u00a0', SYNTAX_ERROR],
    ['.', NUMBER_ERROR],
    ['-.k', NUMBER_ERROR],
    ['1i', SUFFIX_ERROR],
    ['1K', SUFFIX_ERROR],
    ['0.1mi', SUFFIX_ERROR],
    ['-3.01e-', SUFFIX_ERROR],
    ['1e1001', SUFFIX_ERROR],
    ['1e999999999999', SUFFIX_ERROR],
    ['9'.repeat(257), /^quantities must be no more than 256 characters$/],
  ])('rejects %j with a message', (value, message) => {
    expect(() => parseQuantity(value)).toThrow(message)
    expect(isQuantity(value)).toBe(false)
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY])('rejects the number %d', (value) => {
    expect(isQuantity(value)).toBe(false)
  })

  it.each([null, undefined, true, {}, ['1']])('rejects %j as a quantity', (value) => {
    expect(isQuantity(value)).toBe(false)
  })

  it('returns the same result after the cache is cleared', () => {
    const expected = canonicalQuantity('1536Mi')
    for (let i = 0; i < 10_000; i++) parseQuantity(`${i}k`)
    expect(canonicalQuantity('1536Mi')).toBe(expected)
  })
})

describe('compareQuantities', () => {
  it.each([
    ['1Gi', '1024Mi', 0],
    ['1G', '1Gi', -1],
    ['100m', '50m', 1],
    ['10000T', '100Gi', 1],
    ['-1', '1n', -1],
    ['1e3', '1k', 0],
    ['1e1000', '1E', 1],
  ])('compares %s with %s', (a, b, sign) => {
    expect(Math.sign(compareQuantities(a, b))).toBe(sign)
  })

  it('is a total order', () => {
    fc.assert(
      fc.property(anyQuantity, anyQuantity, anyQuantity, (a, b, c) => {
        expect(compareQuantities(a, b)).toBe(0 - compareQuantities(b, a))
        if (compareQuantities(a, b) <= 0 && compareQuantities(b, c) <= 0) {
          expect(compareQuantities(a, c)).toBeLessThanOrEqual(0)
        }
      }),
    )
  })
})

describe('addQuantities and subtractQuantities', () => {
  it.each([
    ['1Gi', '512Mi', '1536Mi', '512Mi'],
    ['1Gi', '1G', '2073741824', '73741824'],
    ['1500m', '500m', '2', '1'],
    ['0', '1Gi', '1Gi', '-1Gi'],
    ['1Gi', '0', '1Gi', '1Gi'],
    ['5', '3Ki', '3077', '-3067'],
    ['9223372036854775807Ki', '1Ki', '9223372036854776831', '9223372036854774783'],
  ])('return for %s and %s the sum %s and the difference %s', (a, b, sum, difference) => {
    expect(formatQuantity(addQuantities(a, b))).toBe(sum)
    expect(formatQuantity(subtractQuantities(a, b))).toBe(difference)
  })

  it('are inverse operations', () => {
    fc.assert(
      fc.property(anyQuantity, anyQuantity, (a, b) => {
        expect(compareQuantities(subtractQuantities(addQuantities(a, b), b), a)).toBe(0)
      }),
    )
  })
})

describe('quantityToBytes', () => {
  it.each([
    ['1Gi', 2n ** 30n],
    ['1.5', 2n],
    ['1n', 1n],
    ['-1.5', -2n],
    ['1e3', 1000n],
    ['0', 0n],
  ])('reads %s as %d', (text, bytes) => {
    expect(quantityToBytes(text)).toBe(bytes)
  })

  it('is the inverse of quantityFromBytes', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 63n }), (bytes) => {
        expect(quantityToBytes(quantityFromBytes(bytes))).toBe(bytes)
      }),
    )
    expect(formatQuantity(quantityFromBytes(10 * 2 ** 30))).toBe('10Gi')
  })
})

it('isIntegerQuantity and quantitySign depend on the amount, not on the text', () => {
  expect(['1', '1Ki', '1000m', '1e-1', '1m'].map(isIntegerQuantity)).toEqual([true, true, true, false, false])
  expect(['-1m', '0Gi', '1n'].map(quantitySign)).toEqual([-1, 0, 1])
})

const anyQuantity = fc
  .tuple(
    fc.constantFrom('', '', '+', '-'),
    fc.oneof(fc.nat({ max: 5000 }).map(String), fc.stringMatching(/^[0-9]{1,20}$/)),
    fc.oneof(fc.constant(''), fc.stringMatching(/^\.[0-9]{0,12}$/)),
    fc.constantFrom(
      '',
      'n',
      'u',
      'm',
      'k',
      'M',
      'G',
      'T',
      'P',
      'E',
      'Ki',
      'Mi',
      'Gi',
      'Ti',
      'Pi',
      'Ei',
      'e3',
      'E-4',
      'e+5',
    ),
  )
  .map((parts) => parts.join(''))
