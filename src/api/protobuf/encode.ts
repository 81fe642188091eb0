// Encodes an object as a protobuf message with the same bytes as the Kubernetes encoders: fields in the order of their
// numbers, sorted map keys, and the zero values of non-pointer fields.

import type { DeclaredValue, ObjectType, Scalar, Type } from '../schema.ts'
import { isPointer, type WireFields, wireFieldsOf } from './fields.ts'
import { createProtobufWriter, type ProtobufWriter } from './writer.ts'

/** Encodes an object, which must be in the canonical form that ../decode.ts returns. */
export function encodeProtobuf(type: ObjectType, object: object): Buffer {
  const writer = createProtobufWriter()
  writeMessage(wireFieldsOf(type), object as JsonRecord, writer)
  return writer.toBytes()
}

type JsonRecord = Readonly<Record<string, DeclaredValue>>

function writeMessage(fields: WireFields, object: JsonRecord, writer: ProtobufWriter): void {
  for (const [number, wireField] of fields) {
    if (wireField.is === 'embedded') writer.writeMessage(number, () => writeMessage(wireField.fields, object, writer))
    else {
      const { type } = wireField.field
      const value = object[wireField.name]
      if (type.is === 'list') for (const item of value ?? []) writeValue(number, type.item, item, writer)
      else if (type.is === 'map') writeMap(number, type.value, value ?? {}, writer)
      else if (value !== undefined || !isPointer(wireField.field)) writeValue(number, type, value, writer)
    }
  }
}

function writeMap(number: number, type: Type, map: JsonRecord, writer: ProtobufWriter): void {
  for (const key of Object.keys(map).sort(compareBytes)) {
    writer.writeMessage(number, () => {
      writer.writeString(1, key)
      writeValue(2, type, map[key], writer)
    })
  }
}

/** Compares by bytes, as other encoders do. The order of UTF-16 code units differs for characters above U+FFFF. */
const compareBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

/** Writes a value; undefined is written as the zero value of the type. */
function writeValue(number: number, type: Type, value: DeclaredValue, writer: ProtobufWriter): void {
  switch (type.is) {
    case 'object':
      writer.writeMessage(number, () => writeMessage(wireFieldsOf(type), value ?? {}, writer))
      break
    case 'json':
      writer.writeMessage(number, () => {
        if (value !== undefined) writer.writeBytes(1, Buffer.from(JSON.stringify(value)))
      })
      break
    case 'list':
      writer.writeMessage(number, () => {
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
      writer.writeString(number, value ?? '')
      break
    case 'boolean':
      writer.writeBoolean(number, value ?? false)
      break
    case 'int32':
    case 'int64':
      writer.writeInt(number, value ?? 0)
      break
    case 'double':
      writer.writeDouble(number, value ?? 0)
      break
    case 'bytes':
      if (value !== undefined) writer.writeBytes(number, Buffer.from(value, 'base64'))
      break
    case 'quantity':
      writer.writeMessage(number, () => writer.writeString(1, value ?? '0'))
      break
    case 'time':
    case 'microTime':
      writer.writeMessage(number, () => {
        if (value !== undefined) writeTime(value, writer)
      })
      break
    case 'intOrString':
      writer.writeMessage(number, () => writeIntOrString(value ?? 0, writer))
  }
}

function writeIntOrString(value: number | string, writer: ProtobufWriter): void {
  const isString = typeof value === 'string'
  writer.writeInt(1, isString ? 1 : 0)
  writer.writeInt(2, isString ? 0 : value)
  writer.writeString(3, isString ? value : '')
}

function writeTime(text: string, writer: ProtobufWriter): void {
  const [dateTime = '', fraction = ''] = text.replace('Z', '').split('.')
  writer.writeInt(1, Date.parse(`${dateTime}Z`) / 1000)
  writer.writeInt(2, Number(fraction.padEnd(9, '0')))
}
