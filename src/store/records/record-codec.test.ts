import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checksumOf } from './checksum.ts'
import {
  decodeHeader,
  encodeHeader,
  isDamagedHeader,
  isOldHeader,
  type RecordName,
  readName,
  writeName,
} from './record-codec.ts'

const revision = fc.nat({ max: 2 ** 48 - 1 })
const name = fc.tuple(fc.nat({ max: 2 }), revision) as fc.Arbitrary<RecordName>

describe('record codec', () => {
  it('round-trips names, and their encodings sort by kind and revision', () => {
    const encode = (recordName: RecordName) => {
      const bytes = Buffer.alloc(20)
      return bytes.subarray(0, writeName(recordName, bytes, 0))
    }
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(readName(encode(a), 0)).toEqual(a)
        const firstDifference = a.findIndex((part, index) => part !== b[index])
        const order =
          firstDifference < 0 ? 0 : Math.sign((a[firstDifference] as number) - (b[firstDifference] as number))
        expect(Buffer.compare(encode(a), encode(b))).toBe(order)
      }),
    )
  })

  const header = fc.record({
    key: fc.string({ minLength: 1, unit: 'grapheme' }),
    revision,
    createRevision: revision,
    expiresAtMs: fc.option(fc.nat({ max: 2 ** 50 }), { nil: undefined }),
    isDeleted: fc.boolean(),
    checksum: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
    valueBytes: fc.nat(2 ** 32 - 1),
  })

  it('round-trips headers', () => {
    fc.assert(fc.property(header, (fields) => void expect(decodeHeader(encodeHeader(fields))).toEqual(fields)))
  })

  it('SYS-20 does not decode a header with a flipped bit as a valid one of this format', () => {
    fc.assert(
      fc.property(header, fc.nat(), (fields, seed) => {
        const bytes = encodeHeader(fields)
        const bit = seed % (bytes.length * 8)
        bytes[bit >> 3]! ^= 1 << (bit & 7)
        const decodedHeader = decodeHeader(bytes)
        expect(isDamagedHeader(decodedHeader) || isOldHeader(decodedHeader)).toBe(true)
      }),
    )
  })

  it('decodes a header of format 1', () => {
    const bytes = Buffer.alloc(17, 'k')
    bytes[0] = 1
    bytes[1] = 2
    bytes.writeUIntBE(7, 2, 6)
    bytes.writeDoubleBE(9_000, 8)
    expect(decodeHeader(bytes)).toEqual({
      isOld: true,
      key: 'k',
      createRevision: 7,
      expiresAtMs: 9_000,
      isDeleted: false,
    })
  })

  it('rejects an unknown format, and reports a truncated header as damaged', () => {
    const fields = {
      key: 'k',
      revision: 1,
      createRevision: 1,
      expiresAtMs: undefined,
      isDeleted: false,
      checksum: 0,
      valueBytes: 0,
    }
    const bytes = encodeHeader(fields)
    expect(decodeHeader(bytes.subarray(0, 12))).toMatchObject({ damage: 'its header has only 12 bytes' })
    bytes[0] = 9
    const end = bytes.length - 4
    bytes.writeInt32BE(checksumOf(bytes.subarray(0, end)), end)
    expect(() => decodeHeader(bytes)).toThrow('format 9; this version of Stowage reads formats 1 and 2')
  })
})
