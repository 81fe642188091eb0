import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseDuration } from './duration.ts'

describe('parseDuration', () => {
  it('adds counts with units', () => {
    expect(parseDuration('1h2m3s4ms')).toBe(3_723_004)
    expect(parseDuration('1.5s')).toBe(1_500)
  })

  it('parses sequences of counts with units and rejects other text', () => {
    const part = fc.tuple(fc.nat(10_000), fc.constantFrom(['ms', 1], ['s', 1_000], ['m', 60_000], ['h', 3_600_000]))
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 4 }), (parts) => {
        const text = parts.map(([count, [unit]]) => `${count}${unit}`).join('')
        expect(parseDuration(text)).toBe(parts.reduce((sum, [count, [, ms]]) => sum + count * Number(ms), 0))
      }),
    )
    for (const text of ['', '5', 's', '-1s', '1d', '1s ', '1 s', 'one']) expect(parseDuration(text)).toBeUndefined()
  })
})
