import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ProtobufError, ProtobufReader } from './reader.ts'
import { createProtobufWriter, type ProtobufWriter } from './writer.ts'

const createReader = (hex: string): ProtobufReader => new ProtobufReader(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
/** Creates a reader at its first field. */
const createFieldReader = (hex: string): ProtobufReader => {
  const message = createReader(hex)
  expect(message.moveToNextField()).toBe(true)
  return message
}
const writeAndRead = (write: (writer: ProtobufWriter) => void): ProtobufReader => {
  const writer = createProtobufWriter()
  write(writer)
  const message = new ProtobufReader(writer.toBytes())
  message.moveToNextField()
  return message
}

describe('protobuf reader', () => {
  it('reads the examples of the specification', () => {
    expect(createFieldReader('08 96 01').readInt32()).toBe(150)
    expect(createFieldReader('12 07 74657374696e67').readString()).toBe('testing')
    const innerReader = createFieldReader('1a 03 08 96 01').readMessage()
    expect(innerReader.moveToNextField() && innerReader.readInt64()).toBe(150)
    expect(innerReader.moveToNextField()).toBe(false)
    expect(createFieldReader('32 06 03 8e02 9ea705').readPacked('int32')).toEqual([3, 270, 86_942])
  })

  it('reads all numbers, texts and bytes that the writer produces', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        expect(writeAndRead((writer) => writer.writeInt(3, value)).readInt64()).toBe(value)
      }),
    )
    fc.assert(
      fc.property(fc.integer(), (value) => {
        expect(writeAndRead((writer) => writer.writeInt(3, value)).readInt32()).toBe(value)
      }),
    )
    fc.assert(
      fc.property(fc.double({ noNaN: true }), fc.string({ unit: 'binary' }), fc.uint8Array(), (number, text, bytes) => {
        expect(writeAndRead((writer) => writer.writeDouble(1, number)).readDouble()).toBe(number)
        expect(writeAndRead((writer) => writer.writeString(1, text)).readString()).toBe(text)
        expect(new Uint8Array(writeAndRead((writer) => writer.writeBytes(1, bytes)).readBytes())).toEqual(bytes)
      }),
    )
  })

  it('reads a negative int32 of ten or five bytes', () => {
    expect(createFieldReader('08 ffffffffffffffffff01').readInt32()).toBe(-1)
    expect(createFieldReader('08 ffffffff0f').readInt32()).toBe(-1)
  })

  it('rejects integers outside the safe range and int32 out of range', () => {
    expect(createFieldReader('08 ffffffffffffff0f').readInt64()).toBe(Number.MAX_SAFE_INTEGER)
    expect(createFieldReader('08 81808080808080f0ff01').readInt64()).toBe(Number.MIN_SAFE_INTEGER)
    const rangeMessage = 'is outside -9007199254740991 to 9007199254740991'
    expect(() => createFieldReader('08 8080808080808010').readInt64()).toThrow(rangeMessage)
    expect(() => createFieldReader('08 8180808080808010').readInt64()).toThrow(rangeMessage)
    expect(() => createFieldReader('08 ffffffffffffffff7f').readInt64()).toThrow(rangeMessage)
    expect(() => createFieldReader('08 8080808010').readInt32()).toThrow('is outside -2147483648 to 2147483647')
  })

  it.each([
    ['an incomplete varint', () => createFieldReader('08 80').readInt64(), 'the varint at byte 1 is incomplete'],
    ['nothing after the key', () => createFieldReader('08').readInt64(), 'the varint at byte 1 is incomplete'],
    [
      'a varint of eleven bytes',
      () => createFieldReader('08 8080808080808080808001').readInt64(),
      'does not fit into 64 bits',
    ],
    [
      'a varint of 65 bits',
      () => createFieldReader('08 ffffffffffffffffff02').readInt64(),
      'does not fit into 64 bits',
    ],
    ['field number 0', () => createReader('00 01').moveToNextField(), 'invalid field key at byte 0'],
    [
      'a field number that is too large',
      () => createReader('8080808010').moveToNextField(),
      'invalid field key at byte 0',
    ],
    [
      'a length beyond the end',
      () => createFieldReader('12 05 61').readString(),
      'at byte 2 has length 5, but only 1 bytes are left',
    ],
    ['a negative length', () => createFieldReader('12 ffffffffffffffffff01').readBytes(), 'has length -1'],
    ['a truncated fixed64', () => createFieldReader('09 0000000000').readDouble(), 'has length 8'],
    [
      'the wrong wire type',
      () => createFieldReader('10 01').readString(),
      'field 2 before byte 1 has a varint; expected a length',
    ],
    [
      'text that is not UTF-8',
      () => createFieldReader('12 02 c328').readString(),
      'the text at byte 2 is not valid UTF-8',
    ],
    [
      'a group',
      () => createFieldReader('0b 0c').skipField(),
      'has wire type 3; groups and other wire types are not supported',
    ],
    ['the end of a group', () => createFieldReader('0c').skipField(), 'has wire type 4'],
    ['a wire type that does not exist', () => createFieldReader('0f').skipField(), 'has wire type 7'],
  ])('rejects %s', (_, read, message) => {
    expect(read).toThrow(ProtobufError)
    expect(read).toThrow(message)
  })

  it('rejects a field that is longer than the message that contains the field', () => {
    const innerReader = createFieldReader('12 02 12 05').readMessage()
    innerReader.moveToNextField()
    expect(() => innerReader.readBytes()).toThrow('at byte 4 has length 5, but only 0 bytes are left')
  })

  it('accepts a replacement character in the text', () => {
    expect(createFieldReader('12 03 efbfbd').readString()).toBe('\ufffd')
  })

  it('skips fields of every supported wire type', () => {
    const message = createReader('08 9601  11 0000000000000000  1a 01 ff  25 00000000  28 07')
    for (const _ of [1, 2, 3, 4]) {
      message.moveToNextField()
      message.skipField()
    }
    expect(message.moveToNextField() && message.readInt64()).toBe(7)
    expect(message.moveToNextField()).toBe(false)
  })
})
