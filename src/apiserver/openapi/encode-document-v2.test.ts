import { describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { secretKind } from '../../api/kinds/secret/secret.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { createResources } from '../resources.ts'
import { documentV2 } from './document-v2.ts'
import { encodeDocument } from './encode-document-v2.ts'

const resources = createResources([podKind, namespaceKind, persistentVolumeClaimKind, secretKind, storageClassKind])

describe('encodeDocument', () => {
  it('SYS-2 encodes the content of the JSON form', () => {
    const document = documentV2(resources)
    expect(readDocument(encodeDocument(document))).toEqual(document)
  })

  it('rejects a property that has no field', () => {
    const definitions = { Volume: { type: 'object', maxProperties: 3 } }
    expect(() => encodeDocument({ definitions })).toThrow(
      'openapi.v2.Schema: there is no field for the property "maxProperties"',
    )
  })
})

// A decoder that is based on the published message definitions and independent of the encoder.

type Message = Map<number, (Buffer | number)[]>

function parseMessage(bytes: Buffer): Message {
  const fields: Message = new Map()
  let offset = 0
  const varint = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[offset++]!
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
  }
  while (offset < bytes.length) {
    const tag = varint()
    const values = fields.get(tag >>> 3) ?? []
    if ((tag & 7) === 0) values.push(varint())
    else {
      const length = varint()
      values.push(bytes.subarray(offset, offset + length))
      offset += length
    }
    fields.set(tag >>> 3, values)
  }
  return fields
}

const valuesOf = (message: Message, number: number): Buffer[] => (message.get(number) ?? []) as Buffer[]
const messageOf = (message: Message, number: number): Message | undefined => {
  const [bytes] = valuesOf(message, number)
  return bytes && parseMessage(bytes)
}
const textOf = (message: Message, number: number): string | undefined => valuesOf(message, number)[0]?.toString()
const textsOf = (message: Message, number: number): string[] | undefined =>
  message.has(number) ? valuesOf(message, number).map(String) : undefined
const flagOf = (message: Message, number: number): boolean | undefined => (message.has(number) ? true : undefined)
const entriesOf = (
  message: Message | undefined,
  number: number,
  decodeValue: (value: Message) => unknown,
): object | undefined =>
  message &&
  Object.fromEntries(
    valuesOf(message, number).map((bytes) => [
      textOf(parseMessage(bytes), 1),
      decodeValue(messageOf(parseMessage(bytes), 2)!),
    ]),
  )
const parseYaml = (anyMessage: Message): unknown => JSON.parse(textOf(anyMessage, 2)!)

/** Removes undefined properties. */
const withoutUndefined = (object: object): object =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))

function readDocument(bytes: Buffer): object {
  const document = parseMessage(bytes)
  const info = messageOf(document, 2)!
  return {
    swagger: textOf(document, 1),
    info: { title: textOf(info, 1), version: textOf(info, 2) },
    paths: entriesOf(messageOf(document, 8), 2, readPathItem),
    definitions: entriesOf(messageOf(document, 9), 1, readSchema),
    securityDefinitions: entriesOf(messageOf(document, 13), 1, (item) => {
      const key = messageOf(item, 2)!
      return { type: textOf(key, 1), name: textOf(key, 2), in: textOf(key, 3), description: textOf(key, 4) }
    }),
    security: valuesOf(document, 12).map((requirement) =>
      entriesOf(parseMessage(requirement), 1, (array) => textsOf(array, 1) ?? []),
    ),
  }
}

function readPathItem(item: Message): object {
  const operation = (number: number) => {
    const value = messageOf(item, number)
    return value && readOperation(value)
  }
  return withoutUndefined({
    get: operation(2),
    put: operation(3),
    post: operation(4),
    delete: operation(5),
    patch: operation(8),
    parameters: valuesOf(item, 9).map(readParameter),
  })
}

function readOperation(operation: Message): object {
  return {
    tags: textsOf(operation, 1),
    description: textOf(operation, 3),
    operationId: textOf(operation, 5),
    produces: textsOf(operation, 6),
    consumes: textsOf(operation, 7),
    parameters: valuesOf(operation, 8).map(readParameter),
    responses: entriesOf(messageOf(operation, 9), 1, (value) => {
      const response = messageOf(value, 1)!
      const schema = messageOf(response, 2)
      return withoutUndefined({ description: textOf(response, 1), schema: schema && readSchema(messageOf(schema, 1)!) })
    }),
    ...entriesOf(operation, 13, parseYaml),
  }
}

function readParameter(item: Buffer): object {
  const parameter = messageOf(parseMessage(item), 1)!
  const body = messageOf(parameter, 1)
  if (body) {
    const schema = readSchema(messageOf(body, 5)!)
    return withoutUndefined({ name: textOf(body, 2), in: textOf(body, 3), required: flagOf(body, 4), schema })
  }
  const nonBody = messageOf(parameter, 2)!
  const query = messageOf(nonBody, 3)
  const fields = query ?? messageOf(nonBody, 4)!
  return withoutUndefined({
    required: flagOf(fields, 1),
    in: textOf(fields, 2),
    description: textOf(fields, 3),
    name: textOf(fields, 4),
    type: textOf(fields, query ? 6 : 5),
    uniqueItems: flagOf(fields, query ? 20 : 19),
  })
}

function readSchema(schema: Message): object {
  const readWrappedSchema = (number: number) => {
    const wrapper = messageOf(schema, number)
    return wrapper && readSchema(messageOf(wrapper, 1)!)
  }
  const type = messageOf(schema, 22)
  return withoutUndefined({
    $ref: textOf(schema, 1),
    format: textOf(schema, 2),
    description: textOf(schema, 4),
    required: textsOf(schema, 19),
    enum: schema.has(20) ? valuesOf(schema, 20).map((anyMessage) => parseYaml(parseMessage(anyMessage))) : undefined,
    additionalProperties: readWrappedSchema(21),
    type: type && textOf(type, 1),
    items: readWrappedSchema(23),
    properties: entriesOf(messageOf(schema, 25), 1, readSchema),
    ...entriesOf(schema, 31, parseYaml),
  })
}
