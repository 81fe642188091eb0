import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeHeader, encodeHeader, type RecordName, readName, writeName } from './record-codec.ts'

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

  it('round-trips headers', () => {
    const header = fc.record({
      key: fc.string({ minLength: 1, unit: 'grapheme' }),
      createRevision: revision,
      expiresAtMs: fc.option(fc.nat({ max: 2 ** 50 }), { nil: undefined }),
      deleted: fc.boolean(),
    })
    fc.assert(fc.property(header, (fields) => void expect(decodeHeader(encodeHeader(fields))).toEqual(fields)))
  })

  it('rejects an unknown format and a truncated header', () => {
    const bytes = encodeHeader({ key: 'k', createRevision: 1, expiresAtMs: undefined, deleted: false })
    expect(() => decodeHeader(bytes.subarray(0, 12))).toThrow('damaged')
    bytes[0] = 9
    expect(() => decodeHeader(bytes)).toThrow('format 9; this version of Stowage reads format 1')
  })
})
