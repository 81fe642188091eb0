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
import { PROTOBUF_SAMPLES } from './samples.ts'

/** All message types of all kinds, so that every field is covered. */
const TYPES = new Set<ObjectType>()
for (const { type } of ALL_KINDS) collect(type)
for (const type of [deleteOptions, eviction, binding]) collect(type)

function collect(type: Type): void {
  if (type.is === 'list') collect(type.item)
  else if (type.is === 'map') collect(type.value)
  else if (type.is === 'object' && !TYPES.has(type)) {
    TYPES.add(type)
    for (const field of Object.values(type.fields)) collect(field.type)
  }
}

describe('encodeProtobuf', () => {
  it.each(PROTOBUF_SAMPLES)('encodes the bytes of $command', ({ type, bytes, json }) => {
    expect(encodeProtobuf(type, json)).toEqual(decodeEnvelope(bytes).raw)
  })

  it('is lossless for all objects of all types', () => {
    expect(TYPES.size).toBeGreaterThan(200)
    for (const type of TYPES) {
      const round = fc.property(objectOf(type, 0), (value) => {
        const object = decode(type, value).object as object
        const back = decode(type, decodeProtobuf(type, encodeProtobuf(type, object))).object
        expect({ type: type.name, object: back }).toEqual({ type: type.name, object })
      })
      fc.assert(round, { numRuns: 30 })
    }
  })

  it('produces bytes that, truncated, decode or fail with a ProtobufError', () => {
    for (const type of TYPES) {
      const cut = fc.property(objectOf(type, 0), fc.nat(), (value, length) => {
        const bytes = encodeProtobuf(type, value)
        try {
          decodeProtobuf(type, bytes.subarray(0, length % (bytes.length + 1)))
        } catch (error) {
          expect(error).toBeInstanceOf(ProtobufError)
        }
      })
      fc.assert(cut, { numRuns: 10 })
    }
  })
})

// Values in canonical form: empty values only in pointers, items and required fields.

const TEXT = fc.string({ unit: 'grapheme', maxLength: 8 })
const TIME = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })

function objectOf(type: ObjectType, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(type.fields).filter(([, field]) => field.tag !== 0)
  const entries = fields.map(([name, field]) => fieldOf(field, depth).map((value) => [name, value] as const))
  return fc
    .tuple(...entries)
    .map((all) => Object.fromEntries(all.filter(([, value]) => value !== undefined)) as Record<string, unknown>)
}

function fieldOf(field: Field, depth: number): fc.Arbitrary<unknown> {
  const isPointer = field.keepsEmpty && !field.required
  const value = plainOf(field.type, depth + 1).map((given) => {
    if (field.type.is === 'list' || field.type.is === 'map') return isNothing(given) ? undefined : given
    if (given === undefined || isPointer) return given
    if (field.type.is === 'object') return isBlank(field.type, given as object) ? undefined : given
    return isNothing(given) || (field.type.is === 'quantity' && given === '0') ? undefined : given
  })
  return fc.option(value, { nil: undefined, freq: depth > 2 ? 1 : 2 })
}

const isNothing = (value: unknown): boolean =>
  value === '' || value === 0 || value === false || (typeof value === 'object' && Object.keys(value!).length === 0)

/** Whether a message equals an absent one. */
function isBlank(type: ObjectType, value: object): boolean {
  const object = decode(type, value).object as object
  const pointers = Object.entries(type.fields).filter(([, field]) => field.keepsEmpty && !field.required)
  if (pointers.some(([name]) => Object.hasOwn(object as object, name))) return false
  return JSON.stringify(object) === JSON.stringify(zeroOf(type))
}

function plainOf(type: Type, depth: number): fc.Arbitrary<unknown> {
  switch (type.is) {
    case 'object':
      return objectOf(type, depth)
    case 'list':
      return fc.array(plainOf(type.item, depth), { maxLength: 2 })
    case 'map':
      return fc.dictionary(fc.oneof(TEXT, fc.constant('__proto__')), plainOf(type.value, depth), { maxKeys: 3 })
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
