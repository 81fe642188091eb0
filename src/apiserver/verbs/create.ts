// POST: creates an object. All checks that require the store run inside the transaction that stores the object.
import { applyDefaults } from '../../api/defaults.ts'
import { FieldErrors } from '../../api/field-errors.ts'
import type { KubeObject } from '../../api/kind.ts'
import type { ManagedFieldsEntry } from '../../api/kinds/shared/meta-schema.ts'
import { validateMeta } from '../../api/meta.ts'
import { alreadyExists, badRequest, generatedNameExists, invalid, methodNotAllowed } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import { generateName, randomUuid } from '../../base/identifiers.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { TransactionView } from '../../store/index.ts'
import { admissionRequest } from '../admission/admission-request.ts'
import { decodeObjectBody, type RequestBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import { objectKey } from '../keys.ts'
import { trackCreatedObject } from '../objects/managed-fields.ts'
import { type AnyObject, type ObjectDeps, putOf, ruleContext, storedObjectOf } from '../objects/object-deps.ts'
import { encodeStored } from '../objects/stored-object.ts'
import type { WritePlan, WriteTarget, WriteVerb } from '../objects/write-verb.ts'
import { bindVerb } from './bind.ts'
import { evictVerb } from './evict.ts'
import { unencodedPlan } from './unencoded-put.ts'

/** Maximum number of attempts to generate an unused name. After that, the create fails with 409 and Retry-After. */
const GENERATED_NAME_ATTEMPTS_MAX = 8

/** Returns the verb of a POST to a collection or to a subresource such as pods/binding or pods/eviction. */
export function createVerb(target: WriteTarget, body: RequestBody, validation: FieldValidation): WriteVerb {
  const { resource, subresource } = target
  if (subresource !== '') {
    const subresourceVerb = SUBRESOURCE_VERBS[`${resource.group}/${resource.plural}/${subresource}`]
    if (!subresourceVerb) throw methodNotAllowed()
    return subresourceVerb(target, body, validation)
  }
  const { object, warnings } = decodeObjectBody(body, resource, validation)
  checkCreateBody(target, object)
  return { do: 'create', target, body: object, warnings }
}

const SUBRESOURCE_VERBS: Readonly<Record<string, typeof createVerb>> = {
  '/pods/binding': bindVerb,
  '/pods/eviction': evictVerb,
}

interface CreateOptions {
  /** The owners of the fields, if the create is that of an apply. */
  readonly owners?: readonly ManagedFieldsEntry[] | undefined
  /** Whether the next write of the same commit updates the object: the new object is then not encoded. */
  readonly isFollowed?: boolean
}

/** Plans the create of a POST, or of an update or apply of a missing object. */
export function planCreate(
  deps: ObjectDeps,
  target: WriteTarget,
  body: KubeObject,
  view: TransactionView,
  { owners, isFollowed = false }: CreateOptions = {},
): WritePlan {
  const { resource } = target
  const { kind } = resource
  const context = ruleContext(deps)
  const object: AnyObject = clone(body)
  const name = chooseName(deps, target, object, view)
  const { metadata } = object
  metadata.name = name
  if (kind.namespaced) metadata.namespace = target.namespace
  else if (metadata.namespace !== undefined) delete metadata.namespace // many manifests set it on cluster-scoped objects
  metadata.uid = randomUuid(deps.random)
  metadata.creationTimestamp = timestamp(context.nowMs)
  // V8 stores the fields of an object from which a field was deleted in a table, and deleting an absent field is slow, too.
  for (const field of SERVER_OWNED_METADATA) if (metadata[field] !== undefined) delete metadata[field]
  if (kind.generationOf) object.metadata.generation = 1
  if (kind.status && !kind.status.isKeptOnCreate && object.status !== undefined) delete object.status

  applyDefaults(kind.type, object)
  kind.defaults?.(object)
  if (owners) metadata.managedFields = owners
  else trackCreatedObject(deps, target, object)
  const admissionInput = { operation: 'CREATE', name, object, oldObject: undefined } as const
  const request = admissionRequest(deps, view, target, admissionInput)
  deps.admission.mutate(request)
  const droppedWarnings = kind.droppedFieldWarnings?.(object, undefined, context) ?? []
  kind.prepareForCreate?.(object, context)

  const errors = new FieldErrors()
  validateMeta(kind, object.metadata, errors)
  kind.validate(object, errors, context)
  if (errors.hasErrors) throw invalid(kind, name, errors.list)

  const storedObject = storedObjectOf(resource, object)
  request.object = storedObject
  request.resultingObject = storedObject
  const admissionWrites = deps.admission.validate(request)
  const key = objectKey(resource.storedKind, target.namespace, name)
  // Check the name last, as Kubernetes does: an invalid object is rejected as invalid even if its name is taken.
  if (view.get(key)) throw alreadyExists(resource, name)
  const warnings = [...droppedWarnings, ...(kind.warnings?.(object, undefined) ?? [])]
  const change = { before: undefined, after: storedObject }
  if (isFollowed && !resource.storedKind.expiresAtMs)
    return unencodedPlan(key, storedObject, { admissionWrites, warnings, change, created: true })
  const value = encodeStored(storedObject)
  return {
    writes: [putOf(deps, resource, key, storedObject, value), ...admissionWrites],
    result: { value, revision: 0, created: true, deleted: false, warnings },
    change,
  }
}

const SERVER_OWNED_METADATA = [
  'resourceVersion',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
  'selfLink',
  'managedFields',
] as const

export function checkCreateBody(target: WriteTarget, body: KubeObject): void {
  const { namespace, resourceVersion } = body.metadata
  if (target.resource.kind.namespaced && namespace && namespace !== target.namespace) {
    throw badRequest(
      `the namespace of the provided object does not match the namespace sent on the request: "${namespace}" is not "${target.namespace}"`,
    )
  }
  if (resourceVersion && resourceVersion !== '0') {
    throw badRequest('resourceVersion should not be set on objects to be created')
  }
}

function chooseName(deps: ObjectDeps, target: WriteTarget, object: KubeObject, view: TransactionView): string {
  if (target.name) return target.name
  const { name, generateName: prefix } = object.metadata
  if (name || !prefix) return name ?? ''
  for (let attempt = 0; attempt < GENERATED_NAME_ATTEMPTS_MAX; attempt++) {
    const candidate = generateName(prefix, deps.random)
    if (!view.get(objectKey(target.resource.storedKind, target.namespace, candidate))) return candidate
  }
  throw generatedNameExists(target.resource, prefix)
}
