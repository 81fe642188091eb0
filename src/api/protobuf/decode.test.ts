import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decode } from '../decode.ts'
import { persistentVolumeClaim } from '../kinds/claim/claim-schema.ts'
import { ALL_KINDS } from '../kinds/index.ts'
import { pod } from '../kinds/pod/pod-schema.ts'
import {
  boolean,
  bytes,
  double,
  type Fields,
  fieldsV1,
  int32,
  int64,
  intOrString,
  list,
  map,
  microTime,
  type ObjectType,
  object,
  opt,
  ptr,
  quantity,
  req,
  string,
  time,
  within,
} from '../schema.ts'
import { decodeProtobuf, MESSAGE_DEPTH_MAX } from './decode.ts'
import { decodeEnvelope } from './envelope.ts'
import { ProtobufError } from './reader.ts'
import { PROTOBUF_SAMPLES } from './samples.fixture.ts'
import { createProtobufWriter, type ProtobufWriter } from './writer.ts'

const encode = (write: (writer: ProtobufWriter) => void): Buffer => {
  const writer = createProtobufWriter()
  write(writer)
  return writer.toBytes()
}
const decodeFields = (fields: Fields, write: (writer: ProtobufWriter) => void) =>
  decodeProtobuf(object('test.Message', '', fields), encode(write))

describe('decodeProtobuf', () => {
  it.each(PROTOBUF_SAMPLES)('SYS-2 decodes the body of $command', ({ type, bytes, json }) => {
    expect(decodeProtobuf(type, decodeEnvelope(bytes).raw)).toEqual(json)
  })

  it('omits zero values of non-pointer fields and keeps those of pointer fields', () => {
    const fields = {
      optionalFlag: opt(1, boolean, ''),
      flag: ptr(2, boolean, ''),
      optionalCount: opt(3, int32, ''),
      count: ptr(4, int64, ''),
      optionalText: opt(5, string, ''),
      text: ptr(6, string, ''),
      optionalAmount: opt(7, quantity, ''),
      amount: ptr(8, quantity, ''),
    }
    const writeZeros = (writer: ProtobufWriter) => {
      for (const number of [1, 2]) writer.writeBoolean(number, false)
      for (const number of [3, 4]) writer.writeInt(number, 0)
      for (const number of [5, 6]) writer.writeString(number, '')
      for (const number of [7, 8]) writer.writeMessage(number, () => writer.writeString(1, '0'))
    }
    expect(decodeFields(fields, writeZeros)).toEqual({ flag: false, count: 0, text: '', amount: '0' })
    expect(decodeFields(fields, () => {})).toEqual({})
  })

  it('omits required zero values, which decode adds', () => {
    const type = object('test.Message', '', { name: req(1, string, ''), port: req(2, int32, '') })
    const decodedValue = decodeProtobuf(
      type,
      encode((writer) => writer.writeString(1, '')),
    )
    expect(decode(type, decodedValue).object).toEqual({ name: '', port: 0 })
  })

  it('omits messages with only zero values, unless they are pointers', () => {
    const inner = object('test.Inner', '', { name: opt(1, string, ''), flag: ptr(2, boolean, '') })
    const fields = { empty: opt(1, inner, ''), pointer: ptr(2, inner, ''), full: opt(3, inner, '') }
    const value = decodeFields(fields, (writer) => {
      writer.writeMessage(1, () => writer.writeString(1, ''))
      writer.writeMessage(2, () => writer.writeString(1, ''))
      writer.writeMessage(3, () => writer.writeBoolean(2, false))
    })
    expect(value).toEqual({ pointer: {}, full: { flag: false } })
  })

  it('keeps empty items of lists and empty values of maps', () => {
    const inner = object('test.Inner', '', { name: opt(1, string, '') })
    const fields = {
      names: opt(1, list(string), ''),
      parts: opt(2, list(inner), ''),
      labels: opt(3, map(string), ''),
      extra: opt(4, map(list(string)), ''),
    }
    const value = decodeFields(fields, (writer) => {
      for (const name of ['a', '', 'a']) writer.writeString(1, name)
      writer.writeMessage(2, () => {})
      writer.writeMessage(3, () => writer.writeString(1, 'key'))
      writer.writeMessage(3, () => writer.writeString(2, 'value without key'))
      writer.writeMessage(3, () => writer.writeString(1, '__proto__'))
      writer.writeMessage(4, () => {
        writer.writeString(1, 'groups')
        writer.writeMessage(2, () => writer.writeString(1, 'one'))
      })
    })
    expect(JSON.stringify(value)).toBe(
      '{"names":["a","","a"],"parts":[{}],"labels":{"key":"","":"value without key","__proto__":""},"extra":{"groups":["one"]}}',
    )
  })

  it('decodes lists of numbers that are unpacked, packed, or both', () => {
    const value = decodeFields({ ids: opt(1, list(int64), '') }, (writer) => {
      writer.writeInt(1, 0)
      writer.writeBytes(1, Buffer.from([1, 2, 0x80, 1]))
      writer.writeInt(1, -5)
    })
    expect(value).toEqual({ ids: [0, 1, 2, 128, -5] })
    const flags = decodeFields({ flags: opt(1, list(boolean), '') }, (writer) =>
      writer.writeBytes(1, Buffer.from([1, 0])),
    )
    expect(flags).toEqual({ flags: [true, false] })
  })

  it('inlines the fields of embedded messages', () => {
    const fields = { ...within(1, { name: opt(1, string, '') }), key: req(2, string, ''), size: ptr(3, double, '') }
    const value = decodeFields(fields, (writer) => {
      writer.writeMessage(1, () => writer.writeString(1, 'settings'))
      writer.writeString(2, 'colour')
      writer.writeDouble(3, 0.5)
    })
    expect(value).toEqual({ name: 'settings', key: 'colour', size: 0.5 })
  })

  it('decodes times, quantities, bytes and ports to their JSON form', () => {
    const fields = {
      time: opt(1, time, ''),
      micro: opt(2, microTime, ''),
      quantity: opt(3, quantity, ''),
      bytes: opt(4, bytes, ''),
      port: opt(5, intOrString, ''),
      named: opt(6, intOrString, ''),
      fields: ptr(7, fieldsV1, ''),
    }
    const value = decodeFields(fields, (writer) => {
      for (const number of [1, 2]) {
        writer.writeMessage(number, () => {
          writer.writeInt(1, 1_767_225_600)
          writer.writeInt(2, 1_234_999)
        })
      }
      writer.writeMessage(3, () => writer.writeString(1, '10Gi'))
      writer.writeBytes(4, Buffer.from([0xff, 0xfe]))
      for (const [number, type] of [
        [5, 0],
        [6, 1],
      ] as const) {
        writer.writeMessage(number, () => {
          writer.writeInt(1, type)
          writer.writeInt(2, 80)
          writer.writeString(3, 'http')
        })
      }
      writer.writeMessage(7, () => writer.writeString(1, '{"f:spec":{}}'))
    })
    expect(value).toEqual({
      time: '2026-01-01T00:00:00Z',
      micro: '2026-01-01T00:00:00.001234Z',
      quantity: '10Gi',
      bytes: '//4=',
      port: 80,
      named: 'http',
      fields: { 'f:spec': {} },
    })
  })

  it('treats an empty time and empty JSON as absent, but keeps the first second of 1970', () => {
    const fields = {
      created: opt(1, time, ''),
      deleted: ptr(2, time, ''),
      raw: ptr(3, fieldsV1, ''),
      epoch: opt(4, time, ''),
    }
    const value = decodeFields(fields, (writer) => {
      for (const number of [1, 2, 3]) writer.writeMessage(number, () => {})
      writer.writeMessage(4, () => writer.writeInt(1, 0))
    })
    expect(value).toEqual({ epoch: '1970-01-01T00:00:00Z' })
  })

  it('merges the parts of a split message and keeps the last value of a singular field that occurs twice', () => {
    const inner = object('test.Inner', '', { a: opt(1, string, ''), b: opt(2, string, '') })
    const value = decodeFields({ inner: opt(1, inner, ''), name: opt(2, string, '') }, (writer) => {
      writer.writeMessage(1, () => writer.writeString(1, 'x'))
      writer.writeMessage(1, () => writer.writeString(2, 'y'))
      for (const name of ['one', 'two']) writer.writeString(2, name)
    })
    expect(value).toEqual({ inner: { a: 'x', b: 'y' }, name: 'two' })
    const resetValue = decodeFields({ name: opt(2, string, '') }, (writer) => {
      for (const name of ['one', '']) writer.writeString(2, name)
    })
    expect(resetValue).toEqual({})
  })

  it('skips unknown fields of newer clients', () => {
    const value = decodeFields({ name: opt(1, string, '') }, (writer) => {
      writer.writeString(99, 'new')
      writer.writeString(1, 'known')
      writer.writeMessage(500, () => writer.writeInt(1, 1))
    })
    expect(value).toEqual({ name: 'known' })
  })

  it('does not decode fields without a field number', () => {
    const specType = persistentVolumeClaim.fields.spec.type as ObjectType
    expect(specType.fields.allocatedResources?.tag).toBe(0)
    expect(() => decodeProtobuf(specType, Buffer.from('0200', 'hex'))).toThrow('invalid field key at byte 0')
  })
})

describe('decodeProtobuf rejects', () => {
  it("a value of the wrong wire type, with the field's path", () => {
    const malformedBytes = encode((writer) =>
      writer.writeMessage(2, () => writer.writeMessage(2, () => writer.writeInt(2, 7))),
    )
    expect(() => decodeProtobuf(persistentVolumeClaim, malformedBytes)).toThrow(
      'spec.resources.requests: field 2 before byte 5 has a varint; expected a length and bytes',
    )
  })

  it.each<[string, Fields, (writer: ProtobufWriter) => void, string]>([
    [
      'a time after the year 9999',
      { at: opt(1, time, '') },
      (writer) => writer.writeMessage(1, () => writer.writeInt(1, 253_402_300_800)),
      'at: 253402300800 seconds since 1970 are outside the years 0 to 9999',
    ],
    [
      'a time before the year 0',
      { at: opt(1, time, '') },
      (writer) => writer.writeMessage(1, () => writer.writeInt(1, -62_167_219_201)),
      'outside the years 0 to 9999',
    ],
    [
      'more nanoseconds than a second has',
      { at: opt(1, microTime, '') },
      (writer) => writer.writeMessage(1, () => writer.writeInt(2, 1_000_000_000)),
      'at: 1000000000 nanoseconds are not within one second',
    ],
    [
      'invalid JSON',
      { raw: ptr(1, fieldsV1, '') },
      (writer) => writer.writeMessage(1, () => writer.writeString(1, '{')),
      'raw: invalid JSON',
    ],
    [
      'JSON that is nested too deep',
      { raw: ptr(1, fieldsV1, '') },
      (writer) => writer.writeMessage(1, () => writer.writeString(1, '['.repeat(100_000))),
      'raw: invalid JSON: objects and lists are nested more than 500 levels deep',
    ],
  ])('%s', (_, fields, write, message) => {
    expect(() => decodeFields(fields, write)).toThrow(ProtobufError)
    expect(() => decodeFields(fields, write)).toThrow(message)
  })

  it('messages that are nested too deep', () => {
    const fields: Record<string, Fields[string]> = {}
    const tree = object('test.Tree', '', fields)
    fields.child = ptr(1, tree, '')
    const encodeNested = (depth: number): Buffer => {
      const writer = createProtobufWriter()
      const write = (remainingDepth: number): void => {
        if (remainingDepth > 0) writer.writeMessage(1, () => write(remainingDepth - 1))
      }
      write(depth)
      return writer.toBytes()
    }
    expect(() => decodeProtobuf(tree, encodeNested(MESSAGE_DEPTH_MAX))).not.toThrow()
    expect(() => decodeProtobuf(tree, encodeNested(MESSAGE_DEPTH_MAX + 1))).toThrow(
      `messages are nested more than ${MESSAGE_DEPTH_MAX} levels deep`,
    )
  })
})

describe('decodeProtobuf of damaged input', () => {
  it('decodes truncated samples or throws a ProtobufError', () => {
    for (const { type, bytes } of PROTOBUF_SAMPLES) {
      const { raw } = decodeEnvelope(bytes)
      for (let length = 0; length < bytes.length; length++) {
        expectDecodedOrRejected(() => decodeEnvelope(bytes.subarray(0, length)))
        expectDecodedOrRejected(() => decodeProtobuf(type, raw.subarray(0, length)))
      }
    }
  })

  it('decodes corrupted samples and arbitrary bytes or throws a ProtobufError', () => {
    const anyEdit = fc.record({ index: fc.nat(), byte: fc.nat(255) })
    fc.assert(
      fc.property(
        fc.constantFrom(...PROTOBUF_SAMPLES),
        fc.array(anyEdit, { minLength: 1 }),
        ({ type, bytes }, edits) => {
          const corruptedBytes = Buffer.from(decodeEnvelope(bytes).raw)
          for (const { index, byte } of edits) corruptedBytes[index % corruptedBytes.length] = byte
          expectDecodedOrRejected(() => decodeProtobuf(type, corruptedBytes))
        },
      ),
      { numRuns: 1_000 },
    )
    fc.assert(
      fc.property(fc.constantFrom(...ALL_KINDS), fc.uint8Array({ maxLength: 64 }), ({ type }, bytes) => {
        expectDecodedOrRejected(() => decodeProtobuf(type, bytes))
        expectDecodedOrRejected(() => decodeProtobuf(pod, bytes))
      }),
      { numRuns: 1_000 },
    )
  })
})

function expectDecodedOrRejected(decodeBytes: () => unknown): void {
  try {
    decodeBytes()
  } catch (error) {
    expect(error).toBeInstanceOf(ProtobufError)
  }
}
