import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createProtobufWriter, type ProtobufWriter } from './writer.ts'

type Tree = { number: number; value: string | boolean | readonly Tree[] }

const writeFields = (writer: ProtobufWriter, fields: readonly Tree[]): void => {
  for (const { number, value } of fields) {
    if (typeof value === 'string') writer.writeString(number, value)
    else if (typeof value === 'boolean') writer.writeBoolean(number, value)
    else writer.writeMessage(number, () => writeFields(writer, value))
  }
}
const encode = (fields: readonly Tree[]): Buffer => {
  const writer = createProtobufWriter()
  writeFields(writer, fields)
  return writer.toBytes()
}

describe('protobuf writer', () => {
  it('writes a string, an embedded message and a boolean', () => {
    // Field 2 is the string "testing", and field 3 is a message that contains it.
    expect(encode([{ number: 2, value: 'testing' }]).toString('hex')).toBe('120774657374696e67')
    expect(encode([{ number: 3, value: [{ number: 2, value: 'testing' }] }]).toString('hex')).toBe(
      '1a09120774657374696e67',
    )
    expect(encode([{ number: 1, value: true }]).toString('hex')).toBe('0801')
  })

  it('writes an empty message as a length of zero', () => {
    expect(encode([{ number: 25, value: [] }]).toString('hex')).toBe('ca0100')
  })

  it('writes nested messages without loss', () => {
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
        expect(decodeFields(fields, encode(fields))).toEqual(fields)
      }),
    )
  })

  it('grows its buffer', () => {
    const longText = 'x'.repeat(20_000)
    const fields = [{ number: 1, value: [{ number: 2, value: [{ number: 3, value: longText }] }] }]
    expect(decodeFields(fields, encode(fields))).toEqual(fields)
  })
})

/** Decodes the fields. The expected tree is the schema, because the format does not distinguish strings from messages. */
function decodeFields(expectedFields: readonly Tree[], bytes: Buffer): Tree[] {
  let offset = 0
  const readVarint = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[offset++]!
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
  }
  const fields = expectedFields.map((expectedField): Tree => {
    const number = readVarint() >>> 3
    if (typeof expectedField.value === 'boolean') return { number, value: readVarint() === 1 }
    const length = readVarint()
    const content = bytes.subarray(offset, offset + length)
    offset += length
    return {
      number,
      value: typeof expectedField.value === 'string' ? content.toString() : decodeFields(expectedField.value, content),
    }
  })
  expect(offset).toBe(bytes.length)
  return fields
}
