// Encodes a Swagger 2 document in the binary form that kubectl up to 1.28 reads: the message openapi.v2.Document.
// The tables give the field numbers for every property of the JSON form.
import { createProtobufWriter, type ProtobufWriter } from '../../api/protobuf/writer.ts'

/**
 * The field of a property. More than one number means nested messages without other fields:
 *   items: { at: [23, 1], one: 'Schema' }   field 23 is a message whose field 1 is the schema
 */
interface Rule {
  readonly at: readonly [number, ...number[]]
  /** The value itself; each item of a list; each entry of a map, as a message of name (1) and value (2). */
  readonly one?: Form
  readonly each?: Form
  readonly named?: Form
}
/** `any` is arbitrary JSON, encoded as text. */
type Form = 'string' | 'boolean' | 'any' | MessageName
type MessageName =
  | 'Document'
  | 'Info'
  | 'PathItem'
  | 'Operation'
  | 'Parameter'
  | 'BodyParameter'
  | 'QueryParameter'
  | 'PathParameter'
  | 'ResponseValue'
  | 'Response'
  | 'Schema'
  | 'SecurityDefinition'
  | 'ApiKeySecurity'
  | 'SecurityRequirement'
  | 'StringArray'

interface Table {
  readonly fields: Readonly<Record<string, Rule>>
  /** Field number of properties that start with `x-`. */
  readonly extensions?: number
}
/** A property of the document: each rule knows the type of its value. */
// biome-ignore lint/suspicious/noExplicitAny: the tables below, not the type system, describe the document
type Value = any

/** A table, or for a message that is a union: the rule for this value. */
type Message = Table | ((value: Value) => Rule)

const QUERY_PARAMETER: Table = {
  fields: {
    required: { at: [1], one: 'boolean' },
    in: { at: [2], one: 'string' },
    description: { at: [3], one: 'string' },
    name: { at: [4], one: 'string' },
    type: { at: [6], one: 'string' },
    uniqueItems: { at: [20], one: 'boolean' },
  },
}

const MESSAGES: Readonly<Record<MessageName, Message>> = {
  Document: {
    fields: {
      swagger: { at: [1], one: 'string' },
      info: { at: [2], one: 'Info' },
      paths: { at: [8, 2], named: 'PathItem' },
      definitions: { at: [9, 1], named: 'Schema' },
      security: { at: [12], each: 'SecurityRequirement' },
      securityDefinitions: { at: [13, 1], named: 'SecurityDefinition' },
    },
  },
  Info: { fields: { title: { at: [1], one: 'string' }, version: { at: [2], one: 'string' } } },
  PathItem: {
    fields: {
      get: { at: [2], one: 'Operation' },
      put: { at: [3], one: 'Operation' },
      post: { at: [4], one: 'Operation' },
      delete: { at: [5], one: 'Operation' },
      patch: { at: [8], one: 'Operation' },
      parameters: { at: [9], each: 'Parameter' },
    },
    extensions: 10,
  },
  Operation: {
    fields: {
      tags: { at: [1], each: 'string' },
      description: { at: [3], one: 'string' },
      operationId: { at: [5], one: 'string' },
      produces: { at: [6], each: 'string' },
      consumes: { at: [7], each: 'string' },
      parameters: { at: [8], each: 'Parameter' },
      responses: { at: [9, 1], named: 'ResponseValue' },
    },
    extensions: 13,
  },
  Parameter: ({ in: place }) => {
    if (place === 'body') return { at: [1, 1], one: 'BodyParameter' }
    return place === 'path' ? { at: [1, 2, 4], one: 'PathParameter' } : { at: [1, 2, 3], one: 'QueryParameter' }
  },
  BodyParameter: {
    fields: {
      name: { at: [2], one: 'string' },
      in: { at: [3], one: 'string' },
      required: { at: [4], one: 'boolean' },
      schema: { at: [5], one: 'Schema' },
    },
  },
  QueryParameter: QUERY_PARAMETER,
  PathParameter: {
    fields: {
      ...QUERY_PARAMETER.fields,
      type: { at: [5], one: 'string' }, // one less than for query parameters, which also have allowEmptyValue
      uniqueItems: { at: [19], one: 'boolean' },
    },
  },
  ResponseValue: () => ({ at: [1], one: 'Response' }),
  Response: { fields: { description: { at: [1], one: 'string' }, schema: { at: [2, 1], one: 'Schema' } } },
  Schema: {
    fields: {
      $ref: { at: [1], one: 'string' },
      format: { at: [2], one: 'string' },
      description: { at: [4], one: 'string' },
      required: { at: [19], each: 'string' },
      enum: { at: [20], each: 'any' },
      additionalProperties: { at: [21, 1], one: 'Schema' },
      type: { at: [22, 1], one: 'string' },
      items: { at: [23, 1], one: 'Schema' },
      properties: { at: [25, 1], named: 'Schema' },
    },
    extensions: 31,
  },
  SecurityDefinition: () => ({ at: [2], one: 'ApiKeySecurity' }),
  ApiKeySecurity: {
    fields: {
      type: { at: [1], one: 'string' },
      name: { at: [2], one: 'string' },
      in: { at: [3], one: 'string' },
      description: { at: [4], one: 'string' },
    },
  },
  SecurityRequirement: () => ({ at: [1], named: 'StringArray' }),
  StringArray: () => ({ at: [1], each: 'string' }),
}

export function encodeDocument(document: object): Buffer {
  const writer = createProtobufWriter()
  writeMessage(writer, 'Document', document)
  return writer.bytes()
}

function writeMessage(writer: ProtobufWriter, name: MessageName, value: Value): void {
  const message = MESSAGES[name]
  if (typeof message === 'function') {
    writeRule(writer, message(value), value)
    return
  }
  for (const [property, content] of Object.entries(value)) {
    const rule = message.fields[property]
    if (rule) writeRule(writer, rule, content)
    else if (property.startsWith('x-') && message.extensions) {
      writeEntry(writer, message.extensions, 'any', [property, content])
    } else throw new Error(`openapi.v2.${name}: there is no field for the property "${property}"`)
  }
}

/** `depth`: number of nested messages opened so far. */
function writeRule(writer: ProtobufWriter, rule: Rule, value: Value, depth = 0): void {
  const number = rule.at[depth]!
  if (depth < rule.at.length - 1) {
    writer.message(number, () => writeRule(writer, rule, value, depth + 1))
  } else if (rule.each) {
    for (const item of value) writeField(writer, number, rule.each, item)
  } else if (rule.named) {
    for (const entry of Object.entries(value)) writeEntry(writer, number, rule.named, entry)
  } else if (rule.one) {
    writeField(writer, number, rule.one, value)
  }
}

function writeEntry(writer: ProtobufWriter, number: number, form: Form, [name, value]: [string, unknown]): void {
  writer.message(number, () => {
    writer.string(1, name)
    writeField(writer, 2, form, value)
  })
}

function writeField(writer: ProtobufWriter, number: number, form: Form, value: Value): void {
  switch (form) {
    case 'string':
      writer.string(number, value)
      break
    case 'boolean':
      writer.boolean(number, value)
      break
    case 'any': // field 2 of Any is YAML, and JSON is valid YAML
      writer.message(number, () => writer.string(2, JSON.stringify(value)))
      break
    default:
      writer.message(number, () => writeMessage(writer, form, value))
  }
}
