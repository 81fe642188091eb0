// Encodes an object as a protobuf message, byte for byte like the Kubernetes encoders: fields in the order of their
// numbers, map keys sorted, zero values of non-pointer fields included.

import type { DeclaredValue, ObjectType, Scalar, Type } from '../schema.ts'
import { isPointer, type WireFields, wireFieldsOf } from './fields.ts'
import { createProtobufWriter, type ProtobufWriter } from './writer.ts'

/** `object` must be canonical, as ../decode.ts returns it. */
export function encodeProtobuf(type: ObjectType, object: object): Buffer {
  const writer = createProtobufWriter()
  writeMessage(wireFieldsOf(type), object as Plain, writer)
  return writer.bytes()
}

type Plain = Readonly<Record<string, DeclaredValue>>

function writeMessage(fields: WireFields, object: Plain, writer: ProtobufWriter): void {
  for (const [number, known] of fields) {
    if (known.is === 'embedded') writer.message(number, () => writeMessage(known.fields, object, writer))
    else {
      const { type } = known.field
      const value = object[known.name]
      if (type.is === 'list') for (const item of value ?? []) writeValue(number, type.item, item, writer)
      else if (type.is === 'map') writeMap(number, type.value, value ?? {}, writer)
      else if (value !== undefined || !isPointer(known.field)) writeValue(number, type, value, writer)
    }
  }
}

function writeMap(number: number, type: Type, map: Plain, writer: ProtobufWriter): void {
  for (const key of Object.keys(map).sort(byBytes)) {
    writer.message(number, () => {
      writer.string(1, key)
      writeValue(2, type, map[key], writer)
    })
  }
}

/** Other encoders sort by bytes; the order of UTF-16 code units differs for characters beyond U+FFFF. */
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** An undefined value is the zero value of its type. */
function writeValue(number: number, type: Type, value: DeclaredValue, writer: ProtobufWriter): void {
  switch (type.is) {
    case 'object':
      writer.message(number, () => writeMessage(wireFieldsOf(type), value ?? {}, writer))
      break
    case 'json':
      writer.message(number, () => {
        if (value !== undefined) writer.bytesField(1, Buffer.from(JSON.stringify(value)))
      })
      break
    case 'list':
      writer.message(number, () => {
        for (const item of value ?? []) writeValue(1, type.item, item, writer)
      })
      break
    case 'map':
      throw new Error('a map in a list or map cannot be encoded in protobuf')
    default:
      writeScalar(number, type.is, value, writer)
  }
}

function writeScalar(number: number, type: Scalar, value: DeclaredValue, writer: ProtobufWriter): void {
  switch (type) {
    case 'string':
      writer.string(number, value ?? '')
      break
    case 'boolean':
      writer.boolean(number, value ?? false)
      break
    case 'int32':
    case 'int64':
      writer.int(number, value ?? 0)
      break
    case 'double':
      writer.double(number, value ?? 0)
      break
    case 'bytes':
      if (value !== undefined) writer.bytesField(number, Buffer.from(value, 'base64'))
      break
    case 'quantity':
      writer.message(number, () => writer.string(1, value ?? '0'))
      break
    case 'time':
    case 'microTime':
      writer.message(number, () => {
        if (value !== undefined) writeTime(value, writer)
      })
      break
    case 'intOrString':
      writer.message(number, () => writeIntOrString(value ?? 0, writer))
  }
}

function writeIntOrString(value: number | string, writer: ProtobufWriter): void {
  const isString = typeof value === 'string'
  writer.int(1, isString ? 1 : 0)
  writer.int(2, isString ? 0 : value)
  writer.string(3, isString ? value : '')
}

function writeTime(text: string, writer: ProtobufWriter): void {
  const [whole = '', fraction = ''] = text.replace('Z', '').split('.')
  writer.int(1, Date.parse(`${whole}Z`) / 1000)
  writer.int(2, Number(fraction.padEnd(9, '0')))
}
