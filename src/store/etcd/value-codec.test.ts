import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeValue, encodeValue } from './value-codec.ts'

describe('the value codec', () => {
  it('gives back every value, moment and place', () => {
    const moment = fc.option(fc.integer({ min: 0, max: 8.64e15 }), { nil: undefined })
    const place = fc.integer({ min: 0, max: 1023 })
    fc.assert(
      fc.property(fc.uint8Array(), moment, place, place, (value, expiresAtMs, place, createPlace) => {
        const decoded = decodeValue(encodeValue({ value, expiresAtMs, place, createPlace }))
        expect(decoded).toMatchObject({ expiresAtMs, place, createPlace })
        expect([...decoded.value]).toEqual([...value])
      }),
    )
  })

  it('does not keep the message a value came in', () => {
    const stored = encodeValue({ value: Buffer.from('x'), expiresAtMs: undefined, place: 0, createPlace: 0 })
    const message = new Uint8Array(1_000)
    message.set(stored, 500)
    expect(decodeValue(message.subarray(500, 500 + stored.length)).value.buffer.byteLength).toBe(1)
  })

  it.each([[[]], [[0, 1]], [[1]]])('names a format it does not know: %j', (bytes) => {
    expect(() => decodeValue(Uint8Array.from(bytes))).toThrow(/a value has format .*reads formats 3 and 4/)
  })

  it('refuses a value that was cut', () => {
    expect(() => decodeValue(Uint8Array.of(4, 0, 0, 0, 0, 1))).toThrow('a value of 6 bytes is shorter than its header')
  })
})
