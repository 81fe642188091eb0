import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeValue, encodeValue } from './value-codec.ts'

const KEY = 'core/configmaps/default/a'
const anyExpiryTime = fc.option(fc.integer({ min: 0, max: 8.64e15 }), { nil: undefined })
const anySub = fc.integer({ min: 0, max: 1023 })
const anyStoredValue = fc.record({
  value: fc.uint8Array(),
  expiresAtMs: anyExpiryTime,
  sub: anySub,
  createSub: anySub,
})

describe('value codec', () => {
  it('round-trips values with expiry time and sub-revisions, with and without a checksum', () => {
    fc.assert(
      fc.property(anyStoredValue, fc.boolean(), (storedValue, hasChecksum) => {
        const { value, ...fields } = decodeValue(KEY, encodeValue(KEY, storedValue, { hasChecksum }))
        expect(fields).toEqual({
          expiresAtMs: storedValue.expiresAtMs,
          sub: storedValue.sub,
          createSub: storedValue.createSub,
        })
        expect([...value]).toEqual([...storedValue.value])
      }),
    )
  })

  it('SYS-20 detects every flipped bit of a value with a checksum, and a value of another key', () => {
    fc.assert(
      fc.property(anyStoredValue, fc.nat(), (storedValue, position) => {
        const bytes = encodeValue(KEY, storedValue, { hasChecksum: true })
        const bit = position % (bytes.length * 8)
        bytes[bit >> 3]! ^= 1 << (bit & 7)
        expect(decodeValue(KEY, bytes).damage).toBeDefined()
        bytes[bit >> 3]! ^= 1 << (bit & 7)
        expect(decodeValue(KEY, bytes).damage).toBeUndefined()
        expect(decodeValue('core/configmaps/default/b', bytes).damage).toBe('its checksum does not match')
      }),
    )
  })

  it('copies the value out of the message', () => {
    const storedValue = { value: Buffer.from('x'), expiresAtMs: undefined, sub: 0, createSub: 0 }
    const bytes = encodeValue(KEY, storedValue, { hasChecksum: false })
    const message = new Uint8Array(1_000)
    message.set(bytes, 500)
    expect(decodeValue(KEY, message.subarray(500, 500 + bytes.length)).value.buffer.byteLength).toBe(1)
  })

  it.each([
    [[], 'its format undefined is unknown'],
    [[0, 1], 'its format 0 is unknown'],
    [[4, 0, 0, 0, 0, 1], 'it has 6 bytes, less than its header'],
  ])('reports the damage of the value %j', (bytes, damage) => {
    expect(decodeValue(KEY, Uint8Array.from(bytes)).damage).toBe(damage)
  })
})
