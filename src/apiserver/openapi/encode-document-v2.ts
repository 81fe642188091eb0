// Encodes a Swagger 2 document as the protobuf message openapi.v2.Document, which kubectl up to 1.28 requests.
// The tables contain the field numbers of the properties that document-v2.ts sets.
import { createProtobufWriter, type ProtobufWriter } from '../../api/protobuf/writer.ts'

/**
 * The encoding of a property. Several numbers are those of nested messages without other fields:
 *   items: { numbers: [23, 1], value: 'Schema' }   field 23 is a message whose field 1 is the schema
 */
interface FieldRule {
  readonly numbers: readonly [number, ...number[]]
  /** Form of a single value. */
  readonly value?: ValueForm
  /** Form of each item of a list. */
  readonly items?: ValueForm
  /** Form of each value of a map, whose entries are messages of name (1) and value (2). */
  readonly entries?: ValueForm
}
/** `any` is arbitrary JSON, encoded as text. */
type ValueForm = 'string' | 'boolean' | 'any' | MessageName
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

interface MessageTable {
  readonly fields: Readonly<Record<string, FieldRule>>
  /** Field number of properties that start with `x-`. */
  readonly extensions?: number
}
/** The value of a property, whose type depends on its rule. */
// biome-ignore lint/suspicious/noExplicitAny: the tables below, not the type system, describe the document
type Value = any

/** The table of a message, or a function that returns the rule for a value of a union. */
type Message = MessageTable | ((value: Value) => FieldRule)

const QUERY_PARAMETER: MessageTable = {
  fields: {
    required: { numbers: [1], value: 'boolean' },
    in: { numbers: [2], value: 'string' },
    description: { numbers: [3], value: 'string' },
    name: { numbers: [4], value: 'string' },
    type: { numbers: [6], value: 'string' },
    uniqueItems: { numbers: [20], value: 'boolean' },
  },
}

const MESSAGES: Readonly<Record<MessageName, Message>> = {
  Document: {
    fields: {
      swagger: { numbers: [1], value: 'string' },
      info: { numbers: [2], value: 'Info' },
      paths: { numbers: [8, 2], entries: 'PathItem' },
      definitions: { numbers: [9, 1], entries: 'Schema' },
      security: { numbers: [12], items: 'SecurityRequirement' },
      securityDefinitions: { numbers: [13, 1], entries: 'SecurityDefinition' },
    },
  },
  Info: { fields: { title: { numbers: [1], value: 'string' }, version: { numbers: [2], value: 'string' } } },
  PathItem: {
    fields: {
      get: { numbers: [2], value: 'Operation' },
      put: { numbers: [3], value: 'Operation' },
      post: { numbers: [4], value: 'Operation' },
      delete: { numbers: [5], value: 'Operation' },
      patch: { numbers: [8], value: 'Operation' },
      parameters: { numbers: [9], items: 'Parameter' },
    },
    extensions: 10,
  },
  Operation: {
    fields: {
      tags: { numbers: [1], items: 'string' },
      description: { numbers: [3], value: 'string' },
      operationId: { numbers: [5], value: 'string' },
      produces: { numbers: [6], items: 'string' },
      consumes: { numbers: [7], items: 'string' },
      parameters: { numbers: [8], items: 'Parameter' },
      responses: { numbers: [9, 1], entries: 'ResponseValue' },
    },
    extensions: 13,
  },
  Parameter: ({ in: location }) => {
    if (location === 'body') return { numbers: [1, 1], value: 'BodyParameter' }
    return location === 'path'
      ? { numbers: [1, 2, 4], value: 'PathParameter' }
      : { numbers: [1, 2, 3], value: 'QueryParameter' }
  },
  BodyParameter: {
    fields: {
      name: { numbers: [2], value: 'string' },
      in: { numbers: [3], value: 'string' },
      required: { numbers: [4], value: 'boolean' },
      schema: { numbers: [5], value: 'Schema' },
    },
  },
  QueryParameter: QUERY_PARAMETER,
  PathParameter: {
    fields: {
      ...QUERY_PARAMETER.fields,
      type: { numbers: [5], value: 'string' }, // query parameters have allowEmptyValue before it
      uniqueItems: { numbers: [19], value: 'boolean' },
    },
  },
  ResponseValue: () => ({ numbers: [1], value: 'Response' }),
  Response: {
    fields: { description: { numbers: [1], value: 'string' }, schema: { numbers: [2, 1], value: 'Schema' } },
  },
  Schema: {
    fields: {
      $ref: { numbers: [1], value: 'string' },
      format: { numbers: [2], value: 'string' },
      description: { numbers: [4], value: 'string' },
      required: { numbers: [19], items: 'string' },
      enum: { numbers: [20], items: 'any' },
      additionalProperties: { numbers: [21, 1], value: 'Schema' },
      type: { numbers: [22, 1], value: 'string' },
      items: { numbers: [23, 1], value: 'Schema' },
      properties: { numbers: [25, 1], entries: 'Schema' },
    },
    extensions: 31,
  },
  SecurityDefinition: () => ({ numbers: [2], value: 'ApiKeySecurity' }),
  ApiKeySecurity: {
    fields: {
      type: { numbers: [1], value: 'string' },
      name: { numbers: [2], value: 'string' },
      in: { numbers: [3], value: 'string' },
      description: { numbers: [4], value: 'string' },
    },
  },
  SecurityRequirement: () => ({ numbers: [1], entries: 'StringArray' }),
  StringArray: () => ({ numbers: [1], items: 'string' }),
}

export function encodeDocument(document: object): Buffer {
  const writer = createProtobufWriter()
  writeMessage(writer, 'Document', document)
  return writer.toBytes()
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

/** Writes a property. `depth` is the number of nested messages that are already open. */
function writeRule(writer: ProtobufWriter, rule: FieldRule, value: Value, depth = 0): void {
  const number = rule.numbers[depth]!
  if (depth < rule.numbers.length - 1) {
    writer.writeMessage(number, () => writeRule(writer, rule, value, depth + 1))
  } else if (rule.items) {
    for (const item of value) writeField(writer, number, rule.items, item)
  } else if (rule.entries) {
    for (const entry of Object.entries(value)) writeEntry(writer, number, rule.entries, entry)
  } else if (rule.value) {
    writeField(writer, number, rule.value, value)
  }
}

function writeEntry(writer: ProtobufWriter, number: number, form: ValueForm, [name, value]: [string, unknown]): void {
  writer.writeMessage(number, () => {
    writer.writeString(1, name)
    writeField(writer, 2, form, value)
  })
}

function writeField(writer: ProtobufWriter, number: number, form: ValueForm, value: Value): void {
  switch (form) {
    case 'string':
      writer.writeString(number, value)
      break
    case 'boolean':
      writer.writeBoolean(number, value)
      break
    case 'any': // field 2 of Any is YAML, and JSON is valid YAML
      writer.writeMessage(number, () => writer.writeString(2, JSON.stringify(value)))
      break
    default:
      writer.writeMessage(number, () => writeMessage(writer, form, value))
  }
}
