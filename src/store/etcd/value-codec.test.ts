import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeValue, encodeValue } from './value-codec.ts'

describe('the value codec', () => {
  it('gives back every value and moment', () => {
    const moment = fc.option(fc.integer({ min: 0, max: 8.64e15 }), { nil: undefined })
    fc.assert(
      fc.property(fc.uint8Array(), moment, (value, expiresAtMs) => {
        const decoded = decodeValue(encodeValue(value, expiresAtMs))
        expect(decoded.expiresAtMs).toBe(expiresAtMs)
        expect([...decoded.value]).toEqual([...value])
      }),
    )
  })

  it('does not keep the message a value came in', () => {
    const message = new Uint8Array(1_000)
    message.set(encodeValue(Buffer.from('x'), undefined), 500)
    expect(decodeValue(message.subarray(500, 502)).value.buffer.byteLength).toBe(1)
  })

  it.each([[[]], [[0, 1]], [[3]]])('names a format it does not know: %j', (bytes) => {
    expect(() => decodeValue(Uint8Array.from(bytes))).toThrow(/a value has format .*reads formats 1 and 2/)
  })
})
