import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { createResources } from '../resources.ts'
import { documentV2 } from './document-v2.ts'
import { encodeDocument } from './gnostic.ts'

const resources = createResources([podKind, namespaceKind, persistentVolumeClaimKind, secretKind, storageClassKind])

describe('the binary form of Swagger 2', () => {
  it('SYS-2 has the same content as the JSON form', () => {
    const document = documentV2(resources)
    expect(readDocument(encodeDocument(document))).toEqual(document)
  })

  it('rejects a property without a field', () => {
    const definitions = { Volume: { type: 'object', maxProperties: 3 } }
    expect(() => encodeDocument({ definitions })).toThrow(
      'openapi.v2.Schema: there is no field for the property "maxProperties"',
    )
  })
})

// A decoder written from the published message definitions, independent of the encoder.

type Message = Map<number, (Buffer | number)[]>

function parse(bytes: Buffer): Message {
  const fields: Message = new Map()
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = varint()
    const values = fields.get(tag >>> 3) ?? []
    if ((tag & 7) === 0) values.push(varint())
    else {
      const length = varint()
      values.push(bytes.subarray(at, at + length))
      at += length
    }
    fields.set(tag >>> 3, values)
  }
  return fields
}

const all = (message: Message, number: number): Buffer[] => (message.get(number) ?? []) as Buffer[]
const inner = (message: Message, number: number): Message | undefined => {
  const [bytes] = all(message, number)
  return bytes && parse(bytes)
}
const text = (message: Message, number: number): string | undefined => all(message, number)[0]?.toString()
const texts = (message: Message, number: number): string[] | undefined =>
  message.has(number) ? all(message, number).map(String) : undefined
const flag = (message: Message, number: number): boolean | undefined => (message.has(number) ? true : undefined)
const named = (message: Message | undefined, number: number, read: (value: Message) => unknown): object | undefined =>
  message &&
  Object.fromEntries(all(message, number).map((bytes) => [text(parse(bytes), 1), read(inner(parse(bytes), 2)!)]))
const yaml = (any: Message): unknown => JSON.parse(text(any, 2)!)

/** Without undefined properties. */
const present = (object: object): object =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))

function readDocument(bytes: Buffer): object {
  const document = parse(bytes)
  const info = inner(document, 2)!
  return {
    swagger: text(document, 1),
    info: { title: text(info, 1), version: text(info, 2) },
    paths: named(inner(document, 8), 2, readPathItem),
    definitions: named(inner(document, 9), 1, readSchema),
    securityDefinitions: named(inner(document, 13), 1, (item) => {
      const key = inner(item, 2)!
      return { type: text(key, 1), name: text(key, 2), in: text(key, 3), description: text(key, 4) }
    }),
    security: all(document, 12).map((requirement) => named(parse(requirement), 1, (array) => texts(array, 1) ?? [])),
  }
}

function readPathItem(item: Message): object {
  const operation = (number: number) => {
    const found = inner(item, number)
    return found && readOperation(found)
  }
  return present({
    get: operation(2),
    put: operation(3),
    post: operation(4),
    delete: operation(5),
    patch: operation(8),
    parameters: all(item, 9).map(readParameter),
  })
}

function readOperation(operation: Message): object {
  return {
    tags: texts(operation, 1),
    description: text(operation, 3),
    operationId: text(operation, 5),
    produces: texts(operation, 6),
    consumes: texts(operation, 7),
    parameters: all(operation, 8).map(readParameter),
    responses: named(inner(operation, 9), 1, (value) => {
      const response = inner(value, 1)!
      const schema = inner(response, 2)
      return present({ description: text(response, 1), schema: schema && readSchema(inner(schema, 1)!) })
    }),
    ...named(operation, 13, yaml),
  }
}

function readParameter(item: Buffer): object {
  const parameter = inner(parse(item), 1)!
  const body = inner(parameter, 1)
  if (body) {
    const schema = readSchema(inner(body, 5)!)
    return present({ name: text(body, 2), in: text(body, 3), required: flag(body, 4), schema })
  }
  const nonBody = inner(parameter, 2)!
  const query = inner(nonBody, 3)
  const given = query ?? inner(nonBody, 4)!
  return present({
    required: flag(given, 1),
    in: text(given, 2),
    description: text(given, 3),
    name: text(given, 4),
    type: text(given, query ? 6 : 5),
    uniqueItems: flag(given, query ? 20 : 19),
  })
}

function readSchema(schema: Message): object {
  const wrapped = (number: number) => {
    const outer = inner(schema, number)
    return outer && readSchema(inner(outer, 1)!)
  }
  const type = inner(schema, 22)
  return present({
    $ref: text(schema, 1),
    format: text(schema, 2),
    description: text(schema, 4),
    required: texts(schema, 19),
    enum: schema.has(20) ? all(schema, 20).map((any) => yaml(parse(any))) : undefined,
    additionalProperties: wrapped(21),
    type: type && text(type, 1),
    items: wrapped(23),
    properties: named(inner(schema, 25), 1, readSchema),
    ...named(schema, 31, yaml),
  })
}
