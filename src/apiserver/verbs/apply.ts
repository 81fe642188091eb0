// Server-side apply: decodes and validates the configuration of a field manager, drops the parts that its endpoint may not
// change, and applies it as an update. ../../api/apply merges the configuration and tracks the ownership of fields.
import {
  applyConfig,
  ConflictError,
  describePath,
  type Entry,
  findConfigProblems,
  hasPath,
  LAST_APPLIED,
  LAST_APPLIED_MANAGER,
  lastAppliedFields,
  lastAppliedText,
  objectShape,
  trackCreate,
} from '../../api/apply/index.ts'
import { countValues, DecodeError, decode, isRecord } from '../../api/decode.ts'
import { applyDefaults } from '../../api/defaults.ts'
import type { JsonObject } from '../../api/json-value.ts'
import { ANNOTATIONS_BYTES_MAX } from '../../api/meta.ts'
import { type ApiError, applyConflict, badRequest } from '../../api/status-error.ts'
import { type ParseContext, type ParsedBody, parseInTurn, parseJsonBody, parseYamlBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import { splitEntries, trackedWrite } from '../objects/managed-fields.ts'
import type { AnyObject, ObjectDeps } from '../objects/object-deps.ts'
import type { WriteTarget, WriteVerb } from '../objects/write-verb.ts'
import type { Resource } from '../resources.ts'

export interface ApplyOptions {
  /** Whether to take ownership of conflicting fields instead of failing. */
  readonly force: boolean
  readonly fieldValidation: FieldValidation
}

/** Parses YAML. Tries JSON first if possible, because it is much faster to parse. */
export async function parseApplyBody(bytes: Uint8Array, parseContext: ParseContext): Promise<ParsedBody> {
  if (bytes[0] !== OPEN_BRACE) return parseYamlBody(bytes, parseContext)
  try {
    return await parseInTurn(bytes, parseContext, () => parseJsonBody(bytes))
  } catch {
    return parseYamlBody(bytes, parseContext)
  }
}

const OPEN_BRACE = 0x7b

export function applyVerb(target: WriteTarget, body: ParsedBody, { force, fieldValidation }: ApplyOptions): WriteVerb {
  const { resource } = target
  const sentConfig = checkObject(body.value, resource)
  const duplicates = fieldValidation === 'Ignore' ? [] : body.duplicates().map((path) => `duplicate field "${path}"`)
  if (duplicates.length > 0 && fieldValidation === 'Strict') {
    throw badRequest(`error strict decoding patch: ${duplicates.join(', ')}`)
  }
  const config = limitToEndpoint(decodeConfig(sentConfig, target), target)
  return {
    do: 'update',
    target,
    warnings: duplicates,
    update: {
      compute: (old, deps) => applyTo({ deps, target, force, sentConfig, config }, old),
      isApply: true,
      requiresVersion: false,
    },
  }
}

function checkObject(value: unknown, resource: Resource): JsonObject {
  if (!isRecord(value)) throw badRequest(`error decoding patch: it must be a ${resource.kind.kind} object`)
  const { apiVersion, kind, metadata } = value
  if (apiVersion !== resource.apiVersion || kind !== resource.kind.kind) {
    const actual = `apiVersion ${JSON.stringify(apiVersion ?? '')}, kind ${JSON.stringify(kind ?? '')}`.slice(0, 200)
    throw badRequest(
      `invalid object type: an apply needs apiVersion "${resource.apiVersion}", kind "${resource.kind.kind}"; got ${actual}`,
    )
  }
  if (isRecord(metadata) && metadata.managedFields != null) throw badRequest('metadata.managedFields must be nil')
  return value as JsonObject
}

/** Decodes the configuration without defaults, because the manager owns only the fields that it has sent. */
function decodeConfig(sentConfig: JsonObject, target: WriteTarget): AnyObject {
  const { kind } = target.resource
  const typedPatchError = (reason: string): ApiError =>
    badRequest(
      `failed to create typed patch object (${target.namespace}/${target.name}; ${sentConfig.apiVersion}, Kind=${kind.kind}): ${reason}`,
    )
  try {
    const { object, unknownFields } = decode<AnyObject>(kind.type, sentConfig, ['apiVersion', 'kind'], {
      isPartial: true,
    })
    const problems = [
      ...unknownFields.map((path) => `.${path}: field not declared in schema`),
      ...(unknownFields.length > 0 ? [] : findConfigProblems(objectShape(kind.type), object)),
    ]
    if (problems.length > 0) throw typedPatchError(problems.join(', '))
    kind.normalize?.(object)
    return { ...object, metadata: object.metadata ?? {} }
  } catch (error) {
    if (error instanceof DecodeError) throw typedPatchError(error.message)
    throw error
  }
}

/** Returns the part of the configuration that the endpoint may change. The other parts are neither set nor owned. */
function limitToEndpoint(config: AnyObject, { resource: { kind }, subresource }: WriteTarget): AnyObject {
  if (subresource === 'status' || subresource === 'approval') {
    const { name, namespace, uid, resourceVersion } = config.metadata
    const metadata = kind.status?.acceptsMetadata
      ? config.metadata
      : withoutUndefined({ name, namespace, uid, resourceVersion })
    return withoutUndefined({ metadata, status: config.status })
  }
  if (subresource === 'ephemeralcontainers') {
    const { name, namespace, uid, resourceVersion } = config.metadata
    const { ephemeralContainers } = config.spec ?? {}
    const spec = ephemeralContainers === undefined ? undefined : { ephemeralContainers }
    return withoutUndefined({ metadata: withoutUndefined({ name, namespace, uid, resourceVersion }), spec })
  }
  return kind.status ? withoutUndefined({ ...config, status: undefined }) : config
}

interface ApplyRequest {
  readonly deps: ObjectDeps
  readonly target: WriteTarget
  readonly force: boolean
  /** The configuration as sent. */
  readonly sentConfig: JsonObject
  /** The decoded configuration, limited to the part that the endpoint may change. */
  readonly config: AnyObject
}

/** Applies the configuration to `old`, which is undefined for a create, and updates managedFields. */
function applyTo(request: ApplyRequest, old: AnyObject): AnyObject {
  const { deps, target, sentConfig } = request
  const { managedFields = [], ...metadata } = old?.metadata ?? {}
  const liveObject = old ? { ...old, metadata } : {}
  const { served, foreign } = splitEntries(target, managedFields as readonly Entry[])
  const entries = old && served.length === 0 ? createInitialEntries(deps, target, liveObject) : served
  const { object, entries: updatedEntries }: { object: AnyObject; entries: readonly Entry[] } = merge(
    request,
    liveObject,
    entries,
  )
  const owners = [...updatedEntries, ...foreign]
  if (target.fieldManager === LAST_APPLIED_MANAGER) updateLastAppliedAnnotation(object, sentConfig)
  return { ...object, metadata: { ...object.metadata, managedFields: owners } }
}

/** Assigns all fields of an object without managedFields to the manager "before-first-apply". */
function createInitialEntries(deps: ObjectDeps, target: WriteTarget, liveObject: AnyObject): readonly Entry[] {
  const firstApplyTarget: WriteTarget = { ...target, fieldManager: 'before-first-apply' }
  return trackCreate(trackedWrite(deps, firstApplyTarget), limitToEndpoint(liveObject, target))
}

function merge({ deps, target, force, config }: ApplyRequest, liveObject: AnyObject, entries: readonly Entry[]) {
  const { kind, apiVersion } = target.resource
  const options = {
    ...trackedWrite(deps, target),
    complete: (object: AnyObject) => completeObject(target.resource, object, liveObject),
  }
  try {
    return applyConfig({ ...options, force }, { live: liveObject, config, entries })
  } catch (error) {
    if (error instanceof DecodeError) throw badRequest(`the result of the apply cannot be handled: ${error.message}`)
    if (!(error instanceof ConflictError)) throw error
    const clientSideFields =
      target.fieldManager === LAST_APPLIED_MANAGER && lastAppliedFields(kind.type, liveObject, apiVersion)
    const conflicts = error.conflicts.filter(({ path }) => !clientSideFields || !hasPath(clientSideFields, path))
    if (conflicts.length > 0)
      throw applyConflict(conflicts.map((conflict) => ({ ...conflict, field: describePath(conflict.path) })))
    return applyConfig({ ...options, force: true }, { live: liveObject, config, entries })
  }
}

function completeObject({ kind }: Resource, object: AnyObject, liveObject: AnyObject): AnyObject {
  const completedObject: AnyObject = decode(kind.type, object, [], { valuesMax: () => countValues(liveObject) }).object
  applyDefaults(kind.type, completedObject)
  kind.defaults?.(completedObject)
  return completedObject
}

/**
 * Updates the last-applied annotation, which client-side `kubectl apply` uses, if the object has it. Removes the annotation if
 * the annotations would become too large.
 */
function updateLastAppliedAnnotation(object: AnyObject, sentConfig: JsonObject): void {
  const { annotations } = object.metadata
  if (!annotations?.[LAST_APPLIED]) return
  annotations[LAST_APPLIED] = lastAppliedText(sentConfig)
  const bytes = Object.entries<string>(annotations).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  )
  if (bytes > ANNOTATIONS_BYTES_MAX) delete annotations[LAST_APPLIED]
}

const withoutUndefined = (object: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))
