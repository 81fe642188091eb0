// Reads bodies for the audit log: converts request and response bodies to JSON, and finds the name of a created object.
import { isRecord } from '../../api/decode.ts'
import { decodeEnvelope, PROTOBUF_MEDIA } from '../../api/protobuf/envelope.ts'
import { ProtobufReader } from '../../api/protobuf/reader.ts'
import { mediaType, type ParseContext, parseBody } from '../http/body.ts'
import type { ApiResponse } from '../http/messages.ts'
import type { Resource } from '../resources.ts'
import { isSensitiveKind } from './sensitive-resources.ts'

/** If one body is larger, both are omitted from the event, which then has the annotation audit.k8s.io/truncated. */
export const BODY_BYTES_MAX = 512 * 1024
/** While more large bodies than this wait to be parsed for the log, both bodies of an event are omitted in the same way. */
export const BODIES_WAITING_MAX = 200

export interface BodyOptions {
  readonly contentType: string | undefined
  readonly resource: Resource | undefined
  readonly omitManagedFields: boolean
  readonly parseContext: ParseContext
}

/** Returns the body as JSON text, or undefined if it cannot be recorded. */
export async function bodyJson(bytes: Uint8Array, options: BodyOptions): Promise<string | undefined> {
  if (bytes.length === 0) return undefined
  try {
    const value = await parseValue(bytes, options)
    if (isRecord(value) && isSensitiveKind(value.kind)) return undefined
    return JSON.stringify(options.omitManagedFields ? withoutManagedFields(value) : value)
  } catch {
    return undefined // it cannot be decoded
  }
}

async function parseValue(bytes: Uint8Array, { contentType, resource, parseContext }: BodyOptions): Promise<unknown> {
  const media = mediaType(contentType)
  if (media.endsWith('+json')) return JSON.parse(Buffer.from(bytes).toString('utf8'))
  const body = await parseBody(bytes, media.endsWith('+yaml') ? 'application/yaml' : contentType, parseContext)
  return resource ? body.readAs(resource.kind.type).value : undefined
}

function withoutManagedFields(value: unknown): unknown {
  if (!isRecord(value)) return value
  const copy: Record<string, unknown> = { ...value }
  if (isRecord(value.metadata)) copy.metadata = { ...value.metadata, managedFields: undefined }
  if (Array.isArray(value.items)) copy.items = value.items.map(withoutManagedFields)
  return copy
}

/**
 * Matches the head of a created object: metadata begins with the resourceVersion, if the server adds one, and the name.
 */
const CREATED_NAME =
  /^\{"kind":"[^"]*","apiVersion":"[^"]*","metadata":\{(?:"resourceVersion":"\d+",)?"name":"([^"\\]*)"/

/** Returns the name in the response of a create, or an empty string. */
export function createdNameOf({ status, body, headers }: ApiResponse): string {
  if (status !== 201 || !body) return ''
  if (headers['content-type'] === PROTOBUF_MEDIA) return nameInProtobuf(body)
  const start = Buffer.from(body.buffer, body.byteOffset, Math.min(body.length, 400)).toString('latin1')
  return CREATED_NAME.exec(start)?.[1] ?? ''
}

function nameInProtobuf(body: Uint8Array): string {
  try {
    const object = new ProtobufReader(decodeEnvelope(body).raw)
    if (!object.moveToNextField() || object.number !== 1) return ''
    const metadata = object.readMessage()
    return metadata.moveToNextField() && metadata.number === 1 ? metadata.readString() : ''
  } catch {
    return ''
  }
}
