// Parses and decodes request bodies into objects of the expected kind. Unknown and duplicate fields are ignored, reported as
// warnings or rejected, depending on fieldValidation.
import { DecodeError, decode, isRecord, VALUES_MAX } from '../../api/decode.ts'
import { findDuplicateKeys } from '../../api/duplicate-keys.ts'
import type { KubeObject } from '../../api/kind.ts'
import { decodeJson, JsonError } from '../../api/parse-json.ts'
import { decodeProtobuf } from '../../api/protobuf/decode.ts'
import { decodeEnvelope, PROTOBUF_MEDIA } from '../../api/protobuf/envelope.ts'
import { ProtobufError } from '../../api/protobuf/reader.ts'
import type { ObjectType } from '../../api/schema.ts'
import { badRequest, unsupportedMediaType } from '../../api/status-error.ts'
import type { BodyTurns } from '../flow-control/body-turns.ts'
import type { Resource } from '../resources.ts'
import type { FieldValidation } from './options.ts'

/** Larger bodies are parsed one per turn of the event loop; smaller ones immediately. */
const SMALL_BODY_BYTES_MAX = 32 * 1024
/** YAML takes longer to parse. */
const SMALL_YAML_BYTES_MAX = 2 * 1024

const OBJECT_MEDIA = ['application/json', 'application/yaml', PROTOBUF_MEDIA] as const

/** A request body that is not yet decoded as an object type. */
export interface RequestBody {
  /** The value of the body's field `apiVersion`, of any type; undefined or empty if absent. The same holds for `kind`. */
  readonly apiVersion: unknown
  readonly kind: unknown
  /** Returns the parsed body. Protobuf needs the type because it has field numbers instead of names. */
  readAs(type: ObjectType): ParsedBody
}

/** A parsed body: plain data, and the duplicate keys of its text. */
export interface ParsedBody {
  readonly value: unknown
  /** Returns the paths of duplicate keys. Not needed if the value has `keyCount` keys: then no key occurs twice. */
  duplicates(): readonly string[]
  /** The number of keys in the text. Undefined if the parser does not count them. */
  readonly keyCount: number | undefined
}

/** The name of the user who sent a body, and the turns in which large bodies are parsed. */
export interface ParseContext {
  readonly user: string
  readonly turns: BodyTurns
}

/**
 * Parses a body: immediately if it is small, otherwise when the turn of its user has come. `keysMax` is the maximum number of
 * keys in a JSON body.
 */
export function parseBody(
  bytes: Uint8Array,
  contentType: string | undefined,
  context: ParseContext,
  keysMax = VALUES_MAX,
): RequestBody | Promise<RequestBody> {
  const media = mediaType(contentType)
  if (media === '' || media === 'application/json') {
    return parseInTurn(bytes, context, () => bodyOfAnyType(parseJsonBody(bytes, keysMax)))
  }
  if (media === 'application/yaml' || media === 'application/x-yaml') {
    return parseYamlBody(bytes, context).then(bodyOfAnyType)
  }
  if (media === PROTOBUF_MEDIA) return parseInTurn(bytes, context, () => parseProtobufBody(bytes))
  throw unsupportedMediaType(media, OBJECT_MEDIA)
}

/** Ends the turn of the event loop after a large body was decoded, so that its write is planned in the next one. */
export const pauseAfter = async ({ length }: Uint8Array, { turns }: ParseContext): Promise<void> => {
  if (length > SMALL_BODY_BYTES_MAX) await turns.pause()
}

/** Calls `parse` for a JSON or protobuf body: immediately if it is small, otherwise when the turn of its user has come. */
export const parseInTurn = <T>(
  { length }: Uint8Array,
  { user, turns }: ParseContext,
  parse: () => T,
): T | Promise<T> => (length <= SMALL_BODY_BYTES_MAX ? parse() : turns.run(user, parse))

/** Returns the body of an in-process write or of a write in a commit, whose value is already parsed. */
export const bodyOfValue = (value: unknown): RequestBody => bodyOfAnyType(parsedValue(value))

export const parsedValue = (value: unknown): ParsedBody => ({ value, keyCount: undefined, duplicates: NO_DUPLICATES })
const NO_DUPLICATES = (): readonly string[] => []

const bodyOfAnyType = (parsedBody: ParsedBody): RequestBody => new BodyOfAnyType(parsedBody)

/** A body that is parsed without its type. */
class BodyOfAnyType implements RequestBody {
  readonly apiVersion: unknown
  readonly kind: unknown
  readonly #parsedBody: ParsedBody

  constructor(parsedBody: ParsedBody) {
    const { value } = parsedBody
    if (isRecord(value)) {
      this.apiVersion = value.apiVersion
      this.kind = value.kind
    }
    this.#parsedBody = parsedBody
  }

  readAs(): ParsedBody {
    return this.#parsedBody
  }
}

export const mediaType = (contentType: string | undefined): string =>
  (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()

/** `keysMax` is the maximum number of keys in the body, at all depths. Default: the maximum of one object. */
export function parseJsonBody(bytes: Uint8Array, keysMax = VALUES_MAX): ParsedBody {
  if (bytes.length === 0) throw badRequest('the request has no body; send the object as JSON or YAML')
  try {
    const { value, text, keyCount } = decodeJson(bytes, { keysMax })
    return { value, keyCount, duplicates: () => findDuplicateKeys(text) }
  } catch (error) {
    if (error instanceof JsonError) throw badRequest(`the body could not be read: ${error.message}`)
    throw error
  }
}

export async function parseYamlBody(bytes: Uint8Array, { user, turns }: ParseContext): Promise<ParsedBody> {
  if (bytes.length === 0) throw badRequest('the request has no body; send the object as JSON or YAML')
  const { parseYaml, YamlError } = await import('../../api/yaml-body.ts')
  try {
    const parse = () => parseYaml(bytes, turns.pause)
    const isSmall = bytes.length <= SMALL_YAML_BYTES_MAX
    const { value, duplicateKeys } = await (isSmall ? parse() : turns.run(user, parse))
    return { value, keyCount: undefined, duplicates: () => duplicateKeys }
  } catch (error) {
    if (error instanceof YamlError) throw badRequest(`the body could not be read: ${error.message}`)
    throw error
  }
}

function parseProtobufBody(bytes: Uint8Array): RequestBody {
  if (bytes.length === 0) throw badRequest('the request has no body; send the object in its protobuf envelope')
  const { apiVersion, kind, raw } = decodeProtobufBody(() => decodeEnvelope(bytes))
  return {
    apiVersion,
    kind,
    readAs(type) {
      const value = { apiVersion, kind, ...decodeProtobufBody(() => decodeProtobuf(type, raw)) }
      return { value, keyCount: undefined, duplicates: () => [] }
    },
  }
}

function decodeProtobufBody<T>(decodeBytes: () => T): T {
  try {
    return decodeBytes()
  } catch (error) {
    if (error instanceof ProtobufError) throw badRequest(`the body could not be read: ${error.message}`)
    throw error
  }
}

export interface DecodedBody<T> {
  readonly object: T
  /** Texts of the Warning headers. Empty unless fieldValidation is Warn. */
  readonly warnings: readonly string[]
}

/** Decodes a body whose kind and apiVersion, if set, must be those of the resource. */
export function decodeObjectBody(
  body: RequestBody,
  resource: Resource,
  validation: FieldValidation,
  valuesMax = VALUES_MAX,
): DecodedBody<KubeObject> {
  checkGroupVersionKind(body, resource)
  return decodeAs<KubeObject>(body, resource.kind.type, describeResource(resource), validation, valuesMax)
}

export function decodeAs<T>(
  body: RequestBody,
  type: ObjectType<T>,
  subject: string,
  validation: FieldValidation,
  valuesMax = VALUES_MAX,
): DecodedBody<T> {
  const { value, keyCount, duplicates } = body.readAs(type)
  let decodeResult: ReturnType<typeof decode<T>>
  try {
    decodeResult = decode(type, value, ['apiVersion', 'kind'], { valuesMax: () => valuesMax })
  } catch (error) {
    if (error instanceof DecodeError) throw badRequest(`${subject} cannot be handled: ${error.message}`)
    throw error
  }
  if (validation === 'Ignore') return { object: decodeResult.object, warnings: NO_FINDINGS }
  const duplicateFields = keyCount === undefined || keyCount !== decodeResult.keyCount ? duplicates() : NO_FINDINGS
  if (decodeResult.unknownFields.length === 0 && duplicateFields.length === 0) {
    return { object: decodeResult.object, warnings: NO_FINDINGS }
  }
  const findings = [
    ...decodeResult.unknownFields.map((path) => `unknown field "${path}"`),
    ...duplicateFields.map((path) => `duplicate field "${path}"`),
  ]
  if (validation === 'Strict') {
    throw badRequest(`${subject} cannot be handled: strict decoding error: ${findings.join(', ')}`)
  }
  return { object: decodeResult.object, warnings: findings }
}

const NO_FINDINGS: readonly string[] = []

const describeResource = (resource: Resource): string => `${resource.kind.kind} in version "${resource.version}"`

/** Checks the kind of a body whose version does not matter. */
export function checkKind({ kind }: RequestBody, expected: string): void {
  if (kind && kind !== expected) throw badRequest(`expected ${expected} in the body, got ${String(kind).slice(0, 100)}`)
}

function checkGroupVersionKind({ kind, apiVersion }: RequestBody, resource: Resource): void {
  for (const [field, value] of [
    ['kind', kind],
    ['apiVersion', apiVersion],
  ] as const) {
    if (value !== undefined && value !== null && typeof value !== 'string') {
      throw badRequest(`${field} must be a string`)
    }
  }
  if (apiVersion && apiVersion !== resource.apiVersion) {
    throw badRequest(
      `the API version in the data (${String(apiVersion).slice(0, 100)}) does not match the expected API version (${resource.apiVersion})`,
    )
  }
  if (kind && kind !== resource.kind.kind) {
    throw badRequest(
      `${String(kind).slice(0, 100)} in version "${resource.version}" cannot be handled as a ${resource.kind.kind}: send it to the resource of its kind`,
    )
  }
}
