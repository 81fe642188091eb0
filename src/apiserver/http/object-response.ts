// Builds responses with objects, lists and Status in the form that the client accepts: plain, Table or PartialObjectMetadata,
// as JSON, YAML or protobuf.
import type { JsonValue } from '../../api/json-value.ts'
import { PROTOBUF_MEDIA } from '../../api/protobuf/envelope.ts'
import type { ObjectType } from '../../api/schema.ts'
import { badRequest, type Status } from '../../api/status-error.ts'
import type { Clock } from '../../base/clock.ts'
import { viewOf } from '../objects/object-deps.ts'
import { objectBytes, type StoredObjects } from '../objects/stored-object.ts'
import type { WriteResult } from '../objects/write-verb.ts'
import { status as statusType } from '../openapi/envelope-types.ts'
import type { Resource } from '../resources.ts'
import type { ListedObjects } from '../verbs/list.ts'
import { encodeList } from './list-body.ts'
import {
  type ApiRequest,
  type ApiResponse,
  bytesResponse,
  JSON_TYPE,
  jsonResponse,
  NO_CACHE,
  statusResponse,
  warningHeaders,
} from './messages.ts'
import { type AcceptedForm, type Form, negotiate } from './negotiate.ts'
import { encodeTypedValue, partialObjectMetadata, type TypedValue } from './protobuf-response.ts'
import { type IncludeObject, partialOf, tableOf } from './table.ts'

interface ResponseDeps {
  readonly clock: Clock
  readonly objects: StoredObjects
}

interface ResponseCall {
  readonly request: ApiRequest
  readonly resource: Resource
}

/** Returns the form that the client accepts. A write calls it first, so that an unsupported form rejects the write. */
export function negotiateForm(request: ApiRequest, forms: readonly Form[]): AcceptedForm {
  const acceptedForm = negotiate(request.headers.accept, forms)
  if (acceptedForm.form === 'table') parseIncludeObject(request)
  return acceptedForm
}

export function parseIncludeObject({ query }: ApiRequest): IncludeObject {
  const include = query.get('includeObject') ?? ''
  if (include === '') return 'Metadata'
  if (include === 'None' || include === 'Metadata' || include === 'Object') return include
  throw badRequest(`includeObject must be None, Metadata or Object, not "${include.slice(0, 50)}"`)
}

/** Builds the response of a request that succeeded and returns no object. */
export const successResponse = (
  deps: Pick<ResponseDeps, 'clock'>,
  acceptedForm: AcceptedForm,
  code: number,
  fields: Pick<Status, 'details' | 'code'>,
): Promise<ApiResponse> => {
  const status: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', ...fields }
  return valueResponse(deps, acceptedForm, code, status, statusType)
}

/** Returns an error in protobuf if the client prefers it, otherwise in JSON, even if the client accepts neither. */
export function errorResponse({ headers }: ApiRequest, status: Status): ApiResponse {
  const response = statusResponse(status)
  if (!prefersProtobuf(headers.accept)) return response
  const contentType = { 'content-type': PROTOBUF_MEDIA }
  return { ...response, headers: { ...response.headers, ...contentType }, body: encodeTypedValue(statusType, status) }
}

function prefersProtobuf(accept: string | undefined): boolean {
  if (!accept?.includes(PROTOBUF_MEDIA)) return false
  try {
    return negotiate(accept, ['table', 'partial', 'partialList']).media === 'protobuf'
  } catch {
    return false
  }
}

export const writeResponse = (
  deps: ResponseDeps,
  call: ResponseCall,
  acceptedForm: AcceptedForm,
  verbWarnings: readonly string[],
  { created, value, revision, warnings }: WriteResult,
): ApiResponse | Promise<ApiResponse> =>
  objectResponse(deps, call, acceptedForm, created ? 201 : 200, value, revision, [...verbWarnings, ...warnings])

/** Builds the response with one object. */
export function objectResponse(
  deps: ResponseDeps,
  { request, resource }: ResponseCall,
  acceptedForm: AcceptedForm,
  status: number,
  value: Uint8Array,
  revision: number,
  warnings: readonly string[],
): ApiResponse | Promise<ApiResponse> {
  const headers = warningHeaders(warnings)
  if (acceptedForm.form === 'object' && acceptedForm.media === 'json' && !resource.kind.viewOf) {
    return bytesResponse(status, objectBytes(resource, value, revision), headers)
  }
  const storedObject = JSON.parse(Buffer.from(value).toString('utf8'))
  if (revision > 0) storedObject.metadata.resourceVersion = String(revision)
  const object = viewOf(resource, storedObject)
  switch (acceptedForm.form) {
    case 'table': {
      const options = {
        metaVersion: acceptedForm.metaVersion,
        include: parseIncludeObject(request),
        nowMs: deps.clock.nowMs(),
      }
      const meta = { resourceVersion: String(revision) }
      return jsonResponse(
        status,
        tableOf(resource, [object], meta, { ...options, isList: false, hasColumns: true }),
        headers,
      )
    }
    case 'partial':
    case 'partialList':
      return valueResponse(
        deps,
        acceptedForm,
        status,
        partialOf(object, acceptedForm.metaVersion),
        partialObjectMetadata,
        headers,
      )
    default: {
      const typedObject = { kind: resource.kind.kind, apiVersion: resource.apiVersion, ...object }
      return valueResponse(deps, acceptedForm, status, typedObject, resource.kind.type, headers)
    }
  }
}

export async function listResponse(
  deps: ResponseDeps,
  { request, resource }: ResponseCall,
  acceptedForm: AcceptedForm,
  list: ListedObjects,
): Promise<ApiResponse> {
  const meta = {
    resourceVersion: String(list.revision),
    ...(list.continueToken ? { continue: list.continueToken } : {}),
    ...(list.remainingCount ? { remainingItemCount: list.remainingCount } : {}),
  }
  const include = acceptedForm.form === 'table' ? parseIncludeObject(request) : 'Metadata'
  const body = await encodeList(deps, { resource, entries: list.entries, meta }, acceptedForm, include)
  const headers = { 'content-type': MEDIA_TYPES[acceptedForm.media], 'cache-control': NO_CACHE }
  return 'next' in body ? { status: 200, headers, longBody: body } : { status: 200, headers, body }
}

const MEDIA_TYPES = { json: JSON_TYPE, yaml: 'application/yaml', protobuf: PROTOBUF_MEDIA } as const

/** Builds the response with a value that is not stored, or that needs a form other than the stored one. */
export async function valueResponse(
  { clock }: Pick<ResponseDeps, 'clock'>,
  acceptedForm: AcceptedForm,
  status: number,
  value: TypedValue,
  type: ObjectType,
  headers: ApiResponse['headers'] = {},
): Promise<ApiResponse> {
  if (acceptedForm.media === 'json') return jsonResponse(status, value, headers)
  if (acceptedForm.media === 'protobuf') {
    return bytesResponse(status, encodeTypedValue(type, value), { 'content-type': PROTOBUF_MEDIA, ...headers })
  }
  const { printYamlInSlices } = await import('../../api/print-yaml.ts')
  const text = await printYamlInSlices(value as unknown as JsonValue, () => clock.nextTurn())
  return bytesResponse(status, Buffer.from(text), {
    'content-type': MEDIA_TYPES.yaml,
    ...headers,
  })
}
