import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeControlFrame,
  decodeFrameHeader,
  encodeControlFrame,
  encodeDataHeader,
  encodeNumbers,
  FRAME_HEADER_BYTES,
  FRAME_TYPES,
  SpdyError,
} from './frames.ts'

const anId = fc.integer({ min: 0, max: 0x7fffffff })
const aLength = fc.integer({ min: 0, max: 0xffffff })
const flags = fc.integer({ min: 0, max: 255 })

describe('SPDY frames', () => {
  it('decode to the encoded values', () => {
    fc.assert(
      fc.property(anId, aLength, flags, (streamId, length, flag) => {
        expect(decodeFrameHeader(encodeDataHeader(streamId, length, flag))).toEqual({
          is: 'data',
          streamId,
          flags: flag,
          length,
        })
      }),
      { seed: 1 },
    )
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(FRAME_TYPES)),
        fc.uint8Array({ maxLength: 64 }),
        flags,
        (type, payload, flag) => {
          const frame = encodeControlFrame(type, payload, flag)
          const header = { is: 'control', type, flags: flag, length: payload.length }
          expect(decodeFrameHeader(frame)).toEqual(header)
          expect(frame.subarray(FRAME_HEADER_BYTES).equals(payload)).toBe(true)
        },
      ),
      { seed: 1 },
    )
  })

  it('have the bytes of the specification', () => {
    expect(encodeControlFrame(FRAME_TYPES.ping, encodeNumbers(5)).toString('hex')).toBe('800300060000000400000005')
    expect(encodeDataHeader(3, 2, 1).toString('hex')).toBe('0000000301000002')
  })

  it('are rejected only if their payload is too short', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 20 }), flags, fc.uint8Array({ maxLength: 16 }), (type, flag, payload) => {
        try {
          expect(decodeControlFrame(type, flag, Buffer.from(payload)).is).toMatch(/^[a-zA-Z]+$/)
        } catch (error) {
          expect(error).toBeInstanceOf(SpdyError)
          expect(payload.length).toBeLessThan(10)
        }
      }),
      { seed: 1 },
    )
  })

  it('are rejected if their version is not 3', () => {
    expect(() => decodeFrameHeader(Buffer.from('8002000600000004', 'hex'))).toThrow(/version 2/)
  })
})
