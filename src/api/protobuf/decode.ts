// Decodes a protobuf message into the equivalent JSON value, as input for ../decode.ts. Encoders write the zero values of
// all non-pointer fields, so these and messages with only zero values are omitted. Unknown fields are skipped, because
// clients may be newer than the server.
import { zeroOf } from '../decode.ts'
import { setOwnProperty } from '../json-value.ts'
import { decodeJson, JsonError } from '../parse-json.ts'
import type { Field, ListType, MapType, ObjectType, Scalar, Type } from '../schema.ts'
import { isPointer, type WireFields, wireFieldsOf } from './fields.ts'
import { LENGTH_DELIMITED, ProtobufError, ProtobufReader } from './reader.ts'

/** Messages that are nested deeper are rejected. No declared type is nested this deep. */
export const MESSAGE_DEPTH_MAX = 100

type JsonRecord = Record<string, unknown>

export function decodeProtobuf(type: ObjectType, bytes: Uint8Array): JsonRecord {
  const path: string[] = []
  try {
    return readMessage(wireFieldsOf(type), new ProtobufReader(bytes), {}, path)
  } catch (error) {
    if (error instanceof ProtobufError && path.length > 0) {
      throw new ProtobufError(`${path.join('.')}: ${error.message}`)
    }
    throw error
  }
}

/** Reads a message into `object`. A message may be split into several parts, which are merged. */
function readMessage(fields: WireFields, reader: ProtobufReader, object: JsonRecord, path: string[]): JsonRecord {
  if (path.length > MESSAGE_DEPTH_MAX) {
    throw new ProtobufError(`messages are nested more than ${MESSAGE_DEPTH_MAX} levels deep`)
  }
  while (reader.moveToNextField()) {
    const wireField = fields.get(reader.number)
    if (!wireField) reader.skipField()
    else if (wireField.is === 'embedded') readMessage(wireField.fields, reader.readMessage(), object, path)
    else {
      path.push(wireField.name) // after an error, the path remains for the message
      readField(wireField.name, wireField.field, reader, object, path)
      path.pop()
    }
  }
  return object
}

function readField(name: string, field: Field, reader: ProtobufReader, object: JsonRecord, path: string[]): void {
  const { type } = field
  if (type.is === 'list') {
    object[name] ??= []
    readItem(type.item, reader, object[name] as unknown[], path)
  } else if (type.is === 'map') {
    object[name] ??= {}
    readEntry(type, reader, object[name] as JsonRecord, path)
  } else {
    const value =
      type.is === 'object'
        ? readMessage(wireFieldsOf(type), reader.readMessage(), (object[name] ?? {}) as JsonRecord, path)
        : readValue(type, reader, path)
    if (value !== undefined && (isPointer(field) || !isZero(type, value))) object[name] = value
    else if (object[name] !== undefined) delete object[name] // a later zero value overrides an earlier value
  }
}

function isZero(type: Type, value: unknown): boolean {
  if (type.is === 'object') {
    for (const _ in value as JsonRecord) return false
    return true
  }
  return value === '' || value === 0 || value === false || (type.is === 'quantity' && value === '0')
}

function readItem(item: Type, reader: ProtobufReader, items: unknown[], path: string[]): void {
  const { is } = item
  const canBePacked = is === 'boolean' || is === 'int32' || is === 'int64' || is === 'double'
  if (canBePacked && reader.wireType === LENGTH_DELIMITED) for (const value of reader.readPacked(is)) items.push(value)
  else items.push(readValue(item, reader, path))
}

function readEntry(type: MapType, reader: ProtobufReader, map: JsonRecord, path: string[]): void {
  const entry = reader.readMessage()
  let key = ''
  let value = zeroOf(type.value)
  while (entry.moveToNextField()) {
    if (entry.number === 1) key = entry.readString()
    else if (entry.number === 2) value = readValue(type.value, entry, path)
    else entry.skipField()
  }
  setOwnProperty(map, key, value)
}

/** Reads a list in a map, which is wrapped in a message that contains only the items. */
function readListMessage({ item }: ListType, message: ProtobufReader, path: string[]): unknown[] {
  const items: unknown[] = []
  while (message.moveToNextField()) {
    if (message.number === 1) readItem(item, message, items, path)
    else message.skipField()
  }
  return items
}

/** Reads a value. Returns undefined if the message represents an absent value. */
function readValue(type: Type, reader: ProtobufReader, path: string[]): unknown {
  switch (type.is) {
    case 'object':
      return readMessage(wireFieldsOf(type), reader.readMessage(), {}, path)
    case 'json':
      return readJson(reader.readMessage())
    case 'list':
      return readListMessage(type, reader.readMessage(), path)
    case 'map':
      throw new ProtobufError('a map in a list or map cannot be encoded in protobuf')
    default:
      return readScalar(type.is, reader)
  }
}

function readScalar(type: Scalar, reader: ProtobufReader): unknown {
  switch (type) {
    case 'string':
      return reader.readString()
    case 'boolean':
      return reader.readBoolean()
    case 'int32':
      return reader.readInt32()
    case 'int64':
      return reader.readInt64()
    case 'double':
      return reader.readDouble()
    case 'bytes':
      return reader.readBytes().toString('base64')
    case 'quantity':
      return readQuantity(reader.readMessage())
    case 'time':
      return readTime(reader.readMessage(), 0)
    case 'microTime':
      return readTime(reader.readMessage(), 6)
    case 'intOrString':
      return readIntOrString(reader.readMessage())
  }
}

function readQuantity(message: ProtobufReader): string {
  let text = ''
  while (message.moveToNextField()) {
    if (message.number === 1) text = message.readString()
    else message.skipField()
  }
  return text === '' ? '0' : text
}

const YEAR_0_SECONDS = Date.parse('0000-01-01T00:00:00Z') / 1000
const YEAR_10000_SECONDS = Date.parse('+010000-01-01T00:00:00Z') / 1000

/** Reads a time. Returns undefined for an empty message, which represents an absent time. */
function readTime(message: ProtobufReader, fractionDigits: 0 | 6): string | undefined {
  let isSet = false
  let seconds = 0
  let nanos = 0
  while (message.moveToNextField()) {
    isSet = true
    if (message.number === 1) seconds = message.readInt64()
    else if (message.number === 2) nanos = message.readInt32()
    else message.skipField()
  }
  if (!isSet) return undefined
  if (seconds < YEAR_0_SECONDS || seconds >= YEAR_10000_SECONDS) {
    throw new ProtobufError(`${seconds} seconds since 1970 are outside the years 0 to 9999`)
  }
  if (nanos < 0 || nanos > 999_999_999) throw new ProtobufError(`${nanos} nanoseconds are not within one second`)
  const dateTime = new Date(seconds * 1000).toISOString().slice(0, 19)
  return fractionDigits === 0 ? `${dateTime}Z` : `${dateTime}.${String(nanos).padStart(9, '0').slice(0, 6)}Z`
}

function readIntOrString(message: ProtobufReader): number | string {
  let isString = false
  let number = 0
  let text = ''
  while (message.moveToNextField()) {
    if (message.number === 1) isString = message.readInt64() === 1
    else if (message.number === 2) number = message.readInt32()
    else if (message.number === 3) text = message.readString()
    else message.skipField()
  }
  return isString ? text : number
}

/** Reads JSON that is embedded as text. */
function readJson(message: ProtobufReader): unknown {
  let text: Uint8Array | undefined
  while (message.moveToNextField()) {
    if (message.number === 1) text = message.readBytes()
    else message.skipField()
  }
  if (!text || text.length === 0) return undefined
  try {
    return decodeJson(text).value
  } catch (error) {
    if (error instanceof JsonError) throw new ProtobufError(error.message)
    throw error
  }
}
