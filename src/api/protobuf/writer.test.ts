import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createProtobufWriter, type ProtobufWriter } from './writer.ts'

type Tree = { number: number; value: string | boolean | readonly Tree[] }

const write = (writer: ProtobufWriter, fields: readonly Tree[]): void => {
  for (const { number, value } of fields) {
    if (typeof value === 'string') writer.string(number, value)
    else if (typeof value === 'boolean') writer.boolean(number, value)
    else writer.message(number, () => write(writer, value))
  }
}
const encode = (fields: readonly Tree[]): Buffer => {
  const writer = createProtobufWriter()
  write(writer, fields)
  return writer.bytes()
}

describe('protobuf writer', () => {
  it('writes the examples of the specification', () => {
    // Field 2, the string "testing"; and field 3, a message that contains it.
    expect(encode([{ number: 2, value: 'testing' }]).toString('hex')).toBe('120774657374696e67')
    expect(encode([{ number: 3, value: [{ number: 2, value: 'testing' }] }]).toString('hex')).toBe(
      '1a09120774657374696e67',
    )
    expect(encode([{ number: 1, value: true }]).toString('hex')).toBe('0801')
  })

  it('writes an empty message as a length of zero', () => {
    expect(encode([{ number: 25, value: [] }]).toString('hex')).toBe('ca0100')
  })

  it('writes messages of any depth and length that can be read back', () => {
    const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
      tree: fc.record({
        number: fc.integer({ min: 1, max: 100 }),
        value: fc.oneof(
          { depthSize: 'small' },
          fc.string({ unit: 'binary', maxLength: 500 }),
          fc.boolean(),
          fc.array(tie('tree'), { maxLength: 5 }),
        ),
      }),
    }))
    fc.assert(
      fc.property(fc.array(tree, { maxLength: 10 }), (fields) => {
        expect(readLike(fields, encode(fields))).toEqual(fields)
      }),
    )
  })

  it('grows its buffer', () => {
    const long = 'x'.repeat(20_000)
    const fields = [{ number: 1, value: [{ number: 2, value: [{ number: 3, value: long }] }] }]
    expect(readLike(fields, encode(fields))).toEqual(fields)
  })
})

/** Uses the expected tree as the schema, because the format does not distinguish strings from messages. */
function readLike(expected: readonly Tree[], bytes: Buffer): Tree[] {
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
  }
  const read = expected.map((like): Tree => {
    const number = varint() >>> 3
    if (typeof like.value === 'boolean') return { number, value: varint() === 1 }
    const length = varint()
    const content = bytes.subarray(at, at + length)
    at += length
    return { number, value: typeof like.value === 'string' ? content.toString() : readLike(like.value, content) }
  })
  expect(at).toBe(bytes.length)
  return read
}
