import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { quantityToBytes } from './quantity.ts'
import { normalizeThroughput } from './throughput.ts'

describe('normalizeThroughput', () => {
  it.each([
    ['100', '100Mi'],
    ['1', '1Mi'],
    ['1.5', '1536Ki'],
    ['1k', '1000Mi'],
    ['160000', '160000Mi'],
    ['1048575', '1048575Mi'],
    ['1048576', '1048576'],
    ['1Mi', '1Mi'],
    ['50Mi', '50Mi'],
    ['1000M', '1G'],
    ['0', '0'],
    ['-5', '-5'],
    ['500m', '500m'],
    ['100MiB/s', '100MiB/s'],
  ])('normalizes %s to %s', (input, normalizedText) => {
    expect(normalizeThroughput(input)).toBe(normalizedText)
  })

  it('is idempotent', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 50n), (amount) => {
        const normalizedText = normalizeThroughput(String(amount))
        expect(normalizeThroughput(normalizedText)).toBe(normalizedText)
      }),
    )
  })

  it('returns at least 1Mi for every positive integer', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1 }), (amount) => {
        expect(quantityToBytes(normalizeThroughput(String(amount)))).toBeGreaterThanOrEqual(1_048_576n)
      }),
    )
  })
})
