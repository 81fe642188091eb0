import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeValue, encodeValue } from './value-codec.ts'

describe('value codec', () => {
  it('round-trips values with expiry time and sub-revisions', () => {
    const expiryTime = fc.option(fc.integer({ min: 0, max: 8.64e15 }), { nil: undefined })
    const sub = fc.integer({ min: 0, max: 1023 })
    fc.assert(
      fc.property(fc.uint8Array(), expiryTime, sub, sub, (value, expiresAtMs, sub, createSub) => {
        const decoded = decodeValue(encodeValue({ value, expiresAtMs, sub, createSub }))
        expect(decoded).toMatchObject({ expiresAtMs, sub, createSub })
        expect([...decoded.value]).toEqual([...value])
      }),
    )
  })

  it('copies the value out of the message', () => {
    const stored = encodeValue({ value: Buffer.from('x'), expiresAtMs: undefined, sub: 0, createSub: 0 })
    const message = new Uint8Array(1_000)
    message.set(stored, 500)
    expect(decodeValue(message.subarray(500, 500 + stored.length)).value.buffer.byteLength).toBe(1)
  })

  it.each([[[]], [[0, 1]], [[1]]])('rejects an unknown format: %j', (bytes) => {
    expect(() => decodeValue(Uint8Array.from(bytes))).toThrow(/a value has format .*reads formats 3 and 4/)
  })

  it('rejects a truncated value', () => {
    expect(() => decodeValue(Uint8Array.of(4, 0, 0, 0, 0, 1))).toThrow('a value of 6 bytes is shorter than its header')
  })
})
