import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decode, zeroOf } from '../decode.ts'
import { ALL_KINDS } from '../kinds/index.ts'
import { binding } from '../kinds/pod/pod-schema.ts'
import { deleteOptions, eviction } from '../kinds/shared/delete-options-schema.ts'
import type { Field, ObjectType, Type } from '../schema.ts'
import { decodeProtobuf } from './decode.ts'
import { encodeProtobuf } from './encode.ts'
import { decodeEnvelope } from './envelope.ts'
import { ProtobufError } from './reader.ts'
import { PROTOBUF_SAMPLES } from './samples.fixture.ts'

/** The message types of all kinds and of three request bodies. */
const TYPES = new Set<ObjectType>()
for (const { type } of ALL_KINDS) collectTypes(type)
for (const type of [deleteOptions, eviction, binding]) collectTypes(type)

function collectTypes(type: Type): void {
  if (type.is === 'list') collectTypes(type.item)
  else if (type.is === 'map') collectTypes(type.value)
  else if (type.is === 'object' && !TYPES.has(type)) {
    TYPES.add(type)
    for (const field of Object.values(type.fields)) collectTypes(field.type)
  }
}

describe('encodeProtobuf', () => {
  it.each(PROTOBUF_SAMPLES)('encodes the same bytes as $command', ({ type, bytes, json }) => {
    expect(encodeProtobuf(type, json)).toEqual(decodeEnvelope(bytes).raw)
  })

  it('encodes objects of all types without loss', () => {
    expect(TYPES.size).toBeGreaterThan(200)
    for (const type of TYPES) {
      const roundTrip = fc.property(anyObject(type, 0), (value) => {
        const object = decode(type, value).object as object
        const decodedObject = decode(type, decodeProtobuf(type, encodeProtobuf(type, object))).object
        expect({ type: type.name, object: decodedObject }).toEqual({ type: type.name, object })
      })
      fc.assert(roundTrip, { numRuns: 30 })
    }
  })

  it('returns bytes that are decoded or rejected with a ProtobufError after truncation', () => {
    for (const type of TYPES) {
      const truncation = fc.property(anyObject(type, 0), fc.nat(), (value, length) => {
        const bytes = encodeProtobuf(type, value)
        try {
          decodeProtobuf(type, bytes.subarray(0, length % (bytes.length + 1)))
        } catch (error) {
          expect(error).toBeInstanceOf(ProtobufError)
        }
      })
      fc.assert(truncation, { numRuns: 10 })
    }
  })
})

// The generators below create values without empty optional fields.

const TEXT = fc.string({ unit: 'grapheme', maxLength: 8 })
const TIME = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })

function anyObject(type: ObjectType, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(type.fields).filter(([, field]) => field.tag !== 0)
  const entries = fields.map(([name, field]) => anyField(field, depth).map((value) => [name, value] as const))
  return fc
    .tuple(...entries)
    .map((pairs) => Object.fromEntries(pairs.filter(([, value]) => value !== undefined)) as Record<string, unknown>)
}

function anyField(field: Field, depth: number): fc.Arbitrary<unknown> {
  const isPointer = field.keepsEmpty && !field.required
  const value = anyValue(field.type, depth + 1).map((plainValue) => {
    if (field.type.is === 'list' || field.type.is === 'map') return isZeroValue(plainValue) ? undefined : plainValue
    if (plainValue === undefined || isPointer) return plainValue
    if (field.type.is === 'object') return isZeroMessage(field.type, plainValue as object) ? undefined : plainValue
    return isZeroValue(plainValue) || (field.type.is === 'quantity' && plainValue === '0') ? undefined : plainValue
  })
  return fc.option(value, { nil: undefined, freq: depth > 2 ? 1 : 2 })
}

const isZeroValue = (value: unknown): boolean =>
  value === '' || value === 0 || value === false || (typeof value === 'object' && Object.keys(value!).length === 0)

/** Returns whether a message is equivalent to an absent one. */
function isZeroMessage(type: ObjectType, value: object): boolean {
  const object = decode(type, value).object as object
  const pointers = Object.entries(type.fields).filter(([, field]) => field.keepsEmpty && !field.required)
  if (pointers.some(([name]) => Object.hasOwn(object as object, name))) return false
  return JSON.stringify(object) === JSON.stringify(zeroOf(type))
}

function anyValue(type: Type, depth: number): fc.Arbitrary<unknown> {
  switch (type.is) {
    case 'object':
      return anyObject(type, depth)
    case 'list':
      return fc.array(anyValue(type.item, depth), { maxLength: 2 })
    case 'map':
      return fc.dictionary(fc.oneof(TEXT, fc.constant('__proto__')), anyValue(type.value, depth), { maxKeys: 3 })
    case 'json':
      // JSON has no negative zero.
      return fc
        .dictionary(TEXT, fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true })
        .map((value) => JSON.parse(JSON.stringify(value)))
    case 'string':
      return TEXT
    case 'boolean':
      return fc.boolean()
    case 'int32':
      return fc.integer()
    case 'int64':
      return fc.maxSafeInteger()
    case 'double':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'intOrString':
      return fc.oneof(fc.integer(), TEXT)
    case 'quantity':
      return fc.constantFrom('0', '1', '10Gi', '250m', '1500', '-3', '1e3')
    case 'time':
    case 'microTime':
      return TIME.map((date) => date.toISOString())
    case 'bytes':
      return fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes).toString('base64'))
  }
}
