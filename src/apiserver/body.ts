// Reads request bodies: bytes and a content type in, an object of the wanted kind out. Says precisely what is
// wrong with a body that cannot be read, and warns of or refuses fields nobody knows, as the client asked.
import { DecodeError, decode, isRecord } from '../api/decode.ts'
import { decodeJson, findDuplicateKeys, JsonError } from '../api/json-scan.ts'
import type { KubeObject } from '../api/kind.ts'
import type { ObjectType } from '../api/schema.ts'
import { badRequest, unsupportedMediaType } from '../api/status-error.ts'
import type { FieldValidation } from './options.ts'
import type { Resource } from './resources.ts'

export const OBJECT_MEDIA = ['application/json', 'application/yaml'] as const

/** A parsed body: plain data, and what its text gave twice. */
export interface ParsedBody {
  readonly value: unknown
  /** Paths of duplicate keys; `keyCount` lets a decoder that met fewer keys know it should look. */
  duplicates(): readonly string[]
  /** Undefined where the parser has already reported duplicates itself. */
  readonly keyCount: number | undefined
}

export async function parseBody(bytes: Uint8Array, contentType: string | undefined): Promise<ParsedBody> {
  const media = mediaType(contentType)
  if (media === '' || media === 'application/json') return parseJsonBody(bytes)
  if (media === 'application/yaml' || media === 'application/x-yaml') return parseYamlBody(bytes)
  throw unsupportedMediaType(media, OBJECT_MEDIA)
}

export const mediaType = (contentType: string | undefined): string =>
  (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()

export function parseJsonBody(bytes: Uint8Array): ParsedBody {
  if (bytes.length === 0) throw badRequest('the request has no body; send the object as JSON or YAML')
  try {
    const { value, text, keyCount } = decodeJson(bytes)
    return { value, keyCount, duplicates: () => findDuplicateKeys(text) }
  } catch (error) {
    if (error instanceof JsonError) throw badRequest(`the body could not be read: ${error.message}`)
    throw error
  }
}

export async function parseYamlBody(bytes: Uint8Array): Promise<ParsedBody> {
  if (bytes.length === 0) throw badRequest('the request has no body; send the object as JSON or YAML')
  const { parseYaml, YamlError } = await import('../api/yaml-body.ts')
  try {
    const { value, duplicateKeys } = await parseYaml(bytes)
    return { value, keyCount: undefined, duplicates: () => duplicateKeys }
  } catch (error) {
    if (error instanceof YamlError) throw badRequest(`the body could not be read: ${error.message}`)
    throw error
  }
}

export interface DecodedBody<T> {
  readonly object: T
  /** For Warning headers; empty unless fieldValidation is Warn. */
  readonly warnings: readonly string[]
}

/** The body of a create or update, which must be of the resource's own kind and version. */
export function decodeObjectBody(
  body: ParsedBody,
  resource: Resource,
  validation: FieldValidation,
): DecodedBody<KubeObject> {
  checkGroupVersionKind(body.value, resource)
  return decodeAs<KubeObject>(body, resource.kind.type, describe(resource), validation)
}

export function decodeAs<T>(
  body: ParsedBody,
  type: ObjectType<T>,
  what: string,
  validation: FieldValidation,
): DecodedBody<T> {
  let decoded: ReturnType<typeof decode<T>>
  try {
    decoded = decode(type, body.value, ['apiVersion', 'kind'])
  } catch (error) {
    if (error instanceof DecodeError) throw badRequest(`${what} cannot be handled: ${error.message}`)
    throw error
  }
  if (validation === 'Ignore') return { object: decoded.object, warnings: [] }
  const findings = decoded.unknown.map((path) => `unknown field "${path}"`)
  if (body.keyCount === undefined || body.keyCount !== decoded.keys) {
    for (const path of body.duplicates()) findings.push(`duplicate field "${path}"`)
  }
  if (findings.length > 0 && validation === 'Strict') {
    throw badRequest(`${what} cannot be handled: strict decoding error: ${findings.join(', ')}`)
  }
  return { object: decoded.object, warnings: findings }
}

export const describe = (resource: Resource): string => `${resource.kind.kind} in version "${resource.version}"`

function checkGroupVersionKind(value: unknown, resource: Resource): void {
  if (!isRecord(value)) throw badRequest(`the body must be a ${resource.kind.kind} object`)
  const { kind, apiVersion } = value
  for (const [field, given] of [
    ['kind', kind],
    ['apiVersion', apiVersion],
  ] as const) {
    if (given !== undefined && given !== null && typeof given !== 'string') {
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
      `${String(kind).slice(0, 100)} in version "${resource.version}" cannot be handled as a ${resource.kind.kind}: send it to its own resource`,
    )
  }
}
