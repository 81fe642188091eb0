// Creates and classifies the errors that the API returns.
import type { FieldError } from './field-errors.ts'
import { causeReason, formatFieldErrors } from './field-errors.ts'

export interface StatusCause {
  readonly reason: string
  readonly message: string
  readonly field?: string
}

export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly StatusCause[]
  readonly retryAfterSeconds?: number
}

export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: { readonly continue?: string }
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly reason?: string
  readonly details?: StatusDetails
  readonly code?: number
}

/** An error response. It can be thrown anywhere in the handling of a request and is sent as a Status. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: number
  readonly reason: string
  readonly details: StatusDetails | undefined
  /** A new continue token with which a client can continue a list after its token has expired. */
  readonly continueToken?: string

  constructor(code: number, reason: string, message: string, details?: StatusDetails, continueToken?: string) {
    super(message)
    this.code = code
    this.reason = reason
    this.details = details
    if (continueToken) this.continueToken = continueToken
  }

  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.continueToken ? { continue: this.continueToken } : {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details ? { details: this.details } : {}),
      code: this.code,
    }
  }
}

/** The resource in messages and details: `persistentvolumeclaims`, `storageclasses.storage.k8s.io`. */
export interface ResourceName {
  readonly group: string
  readonly plural: string
}
const qualifiedName = ({ group, plural }: ResourceName): string => (group ? `${plural}.${group}` : plural)
const detailsOf = (resource: ResourceName, name: string): StatusDetails => ({
  ...(name ? { name } : {}),
  ...(resource.group ? { group: resource.group } : {}),
  kind: resource.plural,
})

export const badRequest = (message: string): ApiError => new ApiError(400, 'BadRequest', message)

export const unauthorized = (): ApiError => new ApiError(401, 'Unauthorized', 'Unauthorized')

export const forbidden = (
  resource: ResourceName,
  name: string,
  message: string,
  causes?: readonly StatusCause[],
): ApiError =>
  new ApiError(
    403,
    'Forbidden',
    name
      ? `${qualifiedName(resource)} "${name}" is forbidden: ${message}`
      : `${qualifiedName(resource)} is forbidden: ${message}`,
    { ...detailsOf(resource, name), ...(causes ? { causes } : {}) },
  )

export const forbiddenPath = (message: string): ApiError => new ApiError(403, 'Forbidden', `forbidden: ${message}`)

export const notFound = (resource: ResourceName, name: string): ApiError =>
  new ApiError(404, 'NotFound', `${qualifiedName(resource)} "${name}" not found`, detailsOf(resource, name))

export const noSuchPath = (): ApiError =>
  new ApiError(404, 'NotFound', 'the server could not find the requested resource')

const hasReason = (error: unknown, code: number, reason: string): boolean =>
  error instanceof ApiError && error.code === code && error.reason === reason

/**
 * 403: no role grants the verb on the resource. Admission, such as a quota, also responds with 403, but with other messages.
 * A denial of the node authorizer for a missing relationship is excluded: it is transient, because the authorizer may not
 * have received the pod yet.
 */
export const isMissingRight = (error: unknown): boolean =>
  isForbidden(error) && / cannot \S+ (?:resource|path) /.test((error as ApiError).message) && !isUnrelatedToNode(error)

/** 403 of the node authorizer: it has not received the object, or no pod of the node that uses the object. */
export const isUnrelatedToNode = (error: unknown): boolean =>
  isForbidden(error) && (error as ApiError).message.includes('no relationship found')

/** 404 without an object's name: the kind is not served, or the response is from a proxy. The object may exist. */
export const isNotServed = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 404 && !error.details?.name

/** 404 with the object's name: it does not exist. */
export const isNotFound = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 404 && Boolean(error.details?.name)

/** 409: the object changed since it was read, a precondition failed, or an apply would change fields of other managers. */
export const isConflict = (error: unknown): boolean => hasReason(error, 409, 'Conflict')

/** 409: an object of this name exists. */
export const isAlreadyExists = (error: unknown): boolean => hasReason(error, 409, 'AlreadyExists')

/** 403: the namespace is being deleted, so nothing can be created in it. */
export const isNamespaceTerminating = (error: unknown): boolean =>
  error instanceof ApiError &&
  error.code === 403 &&
  (error.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false)

/** 403: the user is not authorized, or admission (a quota, for example) rejected the request. */
export const isForbidden = (error: unknown): boolean => error instanceof ApiError && error.code === 403

/** 410: the resourceVersion or continue token is older than the server's history. */
export const isExpired = (error: unknown): boolean => error instanceof ApiError && error.code === 410

/** 422: the object failed validation. */
export const isInvalid = (error: unknown): boolean => error instanceof ApiError && error.code === 422

/** 401: the server did not accept the credentials. */
export const isUnauthorized = (error: unknown): boolean => error instanceof ApiError && error.code === 401

/** 503: the server cannot be reached or cannot handle requests now. A write may have succeeded. */
export const isUnavailable = (error: unknown): boolean => error instanceof ApiError && error.code === 503

export const methodNotAllowed = (): ApiError =>
  new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource')

/** 405: clients cannot write objects of a foreign kind. */
export const notStored = (resource: ResourceName): ApiError => {
  const name = qualifiedName(resource)
  return new ApiError(
    405,
    'MethodNotAllowed',
    `Stowage does not store ${name}, so they cannot be written. Remove them from the manifest; ` +
      '`kubectl api-resources` prints the kinds that are stored',
  )
}

export const notAcceptable = (message: string): ApiError => new ApiError(406, 'NotAcceptable', message)

export const alreadyExists = (resource: ResourceName, name: string): ApiError =>
  new ApiError(409, 'AlreadyExists', `${qualifiedName(resource)} "${name}" already exists`, detailsOf(resource, name))

export const generatedNameExists = (resource: ResourceName, prefix: string): ApiError =>
  new ApiError(
    409,
    'AlreadyExists',
    `${qualifiedName(resource)} "${prefix}" already exists, the server was not able to generate a unique name for the object`,
    { ...detailsOf(resource, prefix), retryAfterSeconds: 1 },
  )

export const conflict = (resource: ResourceName, name: string, message: string): ApiError =>
  new ApiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualifiedName(resource)} "${name}": ${message}`,
    detailsOf(resource, name),
  )

export const changedSinceRead = (resource: ResourceName, name: string): ApiError =>
  conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  )

/** The error for a write with a fence of a lease that the process no longer holds (kinds/lease/lease-fence.ts). */
export const leaseLost = ({
  namespace,
  name,
  holder,
}: {
  readonly namespace: string
  readonly name: string
  readonly holder: string
}): ApiError =>
  new ApiError(409, 'Conflict', `the lease ${namespace}/${name} is no longer held by "${holder}" in this term`, {
    group: 'coordination.k8s.io',
    kind: 'leases',
    name,
    causes: [{ reason: LEASE_LOST, message: 'another process is the leader, or the lease was released' }],
  })

const LEASE_LOST = 'LeaseLost'

/** Returns whether a lease fence rejected the write. */
export const isLeaseLost = (error: unknown): boolean =>
  error instanceof ApiError && (error.details?.causes ?? []).some(({ reason }) => reason === LEASE_LOST)

/** The error for an apply that would change fields of other managers. The message is that of Kubernetes. */
export function applyConflict(
  conflicts: readonly { readonly owner: ConflictingManager; readonly field: string }[],
): ApiError {
  const causes = conflicts.map(({ owner, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${formatManager(owner)}`,
    field,
  }))
  const single = causes.length === 1 && causes[0]
  return new ApiError(
    409,
    'Conflict',
    single
      ? `Apply failed with 1 conflict: ${single.message}: ${single.field}`
      : `Apply failed with ${causes.length} conflicts: ${formatCauses(causes)}`,
    { causes },
  )
}

interface ConflictingManager {
  readonly manager: string
  readonly operation: string
  readonly apiVersion: string
  readonly subresource?: string
}

function formatManager({ manager, operation, apiVersion, subresource }: ConflictingManager): string {
  const subresourceText = subresource ? ` with subresource ${JSON.stringify(subresource)}` : ''
  return `${JSON.stringify(manager)}${subresourceText}${operation === 'Update' ? ` using ${apiVersion}` : ''}`
}

function formatCauses(causes: readonly StatusCause[]): string {
  const messages = [...new Set(causes.map(({ message }) => message))].sort()
  return messages
    .flatMap((message) => [
      `${message.replace('conflict', 'conflicts')}:`,
      ...causes.filter((cause) => cause.message === message).map(({ field }) => `- ${field}`),
    ])
    .join('\n')
}

export const expired = (message: string, continueToken?: string): ApiError =>
  new ApiError(410, 'Expired', message, undefined, continueToken)

export const bodyTooLarge = (maxBytes: number): ApiError =>
  new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${maxBytes}`)

export const patchTooLarge = (message: string): ApiError => new ApiError(413, 'RequestEntityTooLarge', message)

export const unsupportedMediaType = (contentType: string, supportedMedia: readonly string[]): ApiError =>
  new ApiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${supportedMedia.join(', ')}` +
      (contentType ? ` (got ${contentType})` : ''),
  )

export const invalid = (kind: { group: string; kind: string }, name: string, errors: readonly FieldError[]): ApiError =>
  new ApiError(
    422,
    'Invalid',
    `${kind.group ? `${kind.kind}.${kind.group}` : kind.kind} "${name}" is invalid: ${formatFieldErrors(errors)}`,
    {
      ...(name ? { name } : {}),
      ...(kind.group ? { group: kind.group } : {}),
      kind: kind.kind,
      causes: errors.map((error) => ({ reason: causeReason(error.type), message: error.message, field: error.field })),
    },
  )

export const tooManyRequests = (message: string, retryAfterSeconds = 1): ApiError =>
  new ApiError(429, 'TooManyRequests', message, { retryAfterSeconds })

export const internalError = (message: string): ApiError =>
  new ApiError(500, 'InternalError', `Internal error occurred: ${message}`)

export const unavailable = (message: string, retryAfterSeconds = 1): ApiError =>
  new ApiError(503, 'ServiceUnavailable', message, { retryAfterSeconds })

export const resourceVersionTooLarge = (requestedVersion: number, newestVersion: number): ApiError =>
  new ApiError(504, 'Timeout', `Too large resource version: ${requestedVersion}, current: ${newestVersion}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })

export const timedOut = (message: string): ApiError => new ApiError(504, 'Timeout', message)

export const requestAborted = (): ApiError => new ApiError(499, 'ClientClosedRequest', 'the caller aborted the request')
