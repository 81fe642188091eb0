// Server-side apply: turns the configuration of a field manager into an update. This file reads the configuration, checks
// it and drops the parts that its endpoint may not change; merging and field ownership are in ../../api/apply.
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
import { DecodeError, decode, isRecord } from '../../api/decode.ts'
import { applyDefaults } from '../../api/defaults.ts'
import type { JsonObject } from '../../api/json-value.ts'
import { ANNOTATIONS_BYTES_MAX } from '../../api/meta.ts'
import { type ApiError, applyConflict, badRequest } from '../../api/status-error.ts'
import { type ParsedBody, parseJsonBody, parseYamlBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import { readable, trackedWrite } from '../objects/managed-fields.ts'
import type { AnyObject, ObjectDeps } from '../objects/object-deps.ts'
import type { WriteTarget, WriteVerb } from '../objects/write-verb.ts'
import type { Resource } from '../resources.ts'

export interface ApplyOptions {
  /** Take ownership of conflicting fields instead of failing. */
  readonly force: boolean
  readonly fieldValidation: FieldValidation
}

/** YAML; JSON is valid YAML but much faster to parse as JSON. */
export async function parseApplyBody(bytes: Uint8Array): Promise<ParsedBody> {
  if (bytes[0] !== OPEN_BRACE) return parseYamlBody(bytes)
  try {
    return parseJsonBody(bytes)
  } catch {
    return parseYamlBody(bytes)
  }
}

const OPEN_BRACE = 0x7b

export function applyVerb(target: WriteTarget, body: ParsedBody, { force, fieldValidation }: ApplyOptions): WriteVerb {
  const { resource } = target
  const given = checkedObject(body.value, resource)
  const duplicates = fieldValidation === 'Ignore' ? [] : body.duplicates().map((path) => `duplicate field "${path}"`)
  if (duplicates.length > 0 && fieldValidation === 'Strict') {
    throw badRequest(`error strict decoding patch: ${duplicates.join(', ')}`)
  }
  const config = scoped(decodeConfig(given, target), target)
  return {
    do: 'update',
    target,
    warnings: duplicates,
    update: {
      next: (old, deps) => applied({ deps, target, force, given, config }, old),
      applies: true,
      needsVersion: false,
    },
  }
}

function checkedObject(value: unknown, resource: Resource): JsonObject {
  if (!isRecord(value)) throw badRequest(`error decoding patch: it must be a ${resource.kind.kind} object`)
  const { apiVersion, kind, metadata } = value
  if (apiVersion !== resource.apiVersion || kind !== resource.kind.kind) {
    const got = `apiVersion ${JSON.stringify(apiVersion ?? '')}, kind ${JSON.stringify(kind ?? '')}`.slice(0, 200)
    throw badRequest(
      `invalid object type: an apply needs apiVersion "${resource.apiVersion}", kind "${resource.kind.kind}"; got ${got}`,
    )
  }
  if (isRecord(metadata) && metadata.managedFields != null) throw badRequest('metadata.managedFields must be nil')
  return value as JsonObject
}

/** Without defaults: the manager owns only the fields it sent. */
function decodeConfig(given: JsonObject, target: WriteTarget): AnyObject {
  const { kind } = target.resource
  const refuse = (why: string): ApiError =>
    badRequest(
      `failed to create typed patch object (${target.namespace}/${target.name}; ${given.apiVersion}, Kind=${kind.kind}): ${why}`,
    )
  try {
    const { object, unknown } = decode<AnyObject>(kind.type, given, ['apiVersion', 'kind'], { partial: true })
    const problems = [
      ...unknown.map((path) => `.${path}: field not declared in schema`),
      ...(unknown.length > 0 ? [] : findConfigProblems(objectShape(kind.type), object)),
    ]
    if (problems.length > 0) throw refuse(problems.join(', '))
    kind.normalize?.(object)
    return { ...object, metadata: object.metadata ?? {} }
  } catch (error) {
    if (error instanceof DecodeError) throw refuse(error.message)
    throw error
  }
}

/** The part that the endpoint may change; the rest of the configuration is neither set nor owned. */
function scoped(config: AnyObject, { resource: { kind }, subresource }: WriteTarget): AnyObject {
  if (subresource === 'status') {
    const { name, namespace, uid, resourceVersion } = config.metadata
    const metadata = kind.status?.acceptsMetadata
      ? config.metadata
      : withoutAbsent({ name, namespace, uid, resourceVersion })
    return withoutAbsent({ metadata, status: config.status })
  }
  return kind.status ? withoutAbsent({ ...config, status: undefined }) : config
}

interface Applying {
  readonly deps: ObjectDeps
  readonly target: WriteTarget
  readonly force: boolean
  /** The configuration as sent. */
  readonly given: JsonObject
  /** Decoded, and limited to what the endpoint may change. */
  readonly config: AnyObject
}

/** The object with the configuration applied and its managedFields updated; `old` is undefined for a create. */
function applied(applying: Applying, old: AnyObject): AnyObject {
  const { deps, target, given } = applying
  const { managedFields = [], ...metadata } = old?.metadata ?? {}
  const live = old ? { ...old, metadata } : {}
  const { mine, foreign } = readable(target, managedFields as readonly Entry[])
  const entries = old && mine.length === 0 ? firstRecord(deps, target, live) : mine
  const { object, entries: after }: { object: AnyObject; entries: readonly Entry[] } = merge(applying, live, entries)
  const owners = [...after, ...foreign]
  if (target.fieldManager === LAST_APPLIED_MANAGER) keepLastApplied(object, given)
  return { ...object, metadata: { ...object.metadata, managedFields: owners } }
}

/** An object without managedFields gets the manager "before-first-apply", which owns all fields it has. */
function firstRecord(deps: ObjectDeps, target: WriteTarget, live: AnyObject): readonly Entry[] {
  const before: WriteTarget = { ...target, fieldManager: 'before-first-apply' }
  return trackCreate(trackedWrite(deps, before), scoped(live, target))
}

function merge({ deps, target, force, config }: Applying, live: AnyObject, entries: readonly Entry[]) {
  const { kind, apiVersion } = target.resource
  const options = { ...trackedWrite(deps, target), complete: (object: AnyObject) => completed(target.resource, object) }
  try {
    return applyConfig({ ...options, force }, { live, config, entries })
  } catch (error) {
    if (!(error instanceof ConflictError)) throw error
    const moving = target.fieldManager === LAST_APPLIED_MANAGER && lastAppliedFields(kind.type, live, apiVersion)
    const left = error.conflicts.filter(({ path }) => !moving || !hasPath(moving, path))
    if (left.length > 0) throw applyConflict(left.map((one) => ({ ...one, field: describePath(one.path) })))
    return applyConfig({ ...options, force: true }, { live, config, entries })
  }
}

function completed({ kind }: Resource, object: AnyObject): AnyObject {
  const whole: AnyObject = decode(kind.type, object).object
  applyDefaults(kind.type, whole)
  kind.defaults?.(whole)
  return whole
}

/** Updates the last-applied annotation, which `kubectl apply` without --server-side compares with. */
function keepLastApplied(object: AnyObject, given: JsonObject): void {
  const { annotations } = object.metadata
  if (!annotations?.[LAST_APPLIED]) return
  annotations[LAST_APPLIED] = lastAppliedText(given)
  const bytes = Object.entries<string>(annotations).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  )
  if (bytes > ANNOTATIONS_BYTES_MAX) delete annotations[LAST_APPLIED]
}

const withoutAbsent = (object: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))
