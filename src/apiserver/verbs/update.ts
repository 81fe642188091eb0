// PUT, and the transaction that PUT, patch.ts and apply.ts share. The new state of an object or subresource is computed
// from the stored one inside the transaction, so that a patch without a resourceVersion does not conflict.
import { withDefaults } from '../../api/defaults.ts'
import { FieldErrors } from '../../api/field-errors.ts'
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { Kind, KubeObject } from '../../api/kind.ts'
import type { ObjectMeta } from '../../api/kinds/shared/meta-schema.ts'
import { validateMeta, validateMetaUpdate } from '../../api/meta.ts'
import { badRequest, changedSinceRead, conflict, invalid, notFound } from '../../api/status-error.ts'
import { clone, cloneChanged } from '../../base/clone.ts'
import type { Entry, TransactionView } from '../../store/index.ts'
import { admissionRequest } from '../admission/admission-request.ts'
import { decodeObjectBody, type RequestBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import { equalExceptTimes, trackUpdatedObject } from '../objects/managed-fields.ts'
import { type AnyObject, type ObjectDeps, putOf, ruleContext, storedObjectOf, viewOf } from '../objects/object-deps.ts'
import { decodeStored, encodeStored, sameBytes } from '../objects/stored-object.ts'
import { keyOf, type WritePlan, type WriteTarget, type WriteVerb } from '../objects/write-verb.ts'
import { checkCreateBody, planCreate } from './create.ts'
import { decodeScale, isScale, mergeScale } from './scale.ts'
import { NO_VALUE, UnencodedEntry, unencodedPlan } from './unencoded-put.ts'

export interface Update {
  /** Computes the new object from the stored one, which is frozen. Runs inside the transaction, possibly several times. */
  compute(old: AnyObject, deps: ObjectDeps): AnyObject
  /** Set for an apply, whose `compute` also sets managedFields and creates an object if `old` is undefined. */
  readonly isApply?: true
  /** The body of a PUT, for kinds that an update may create. */
  readonly createFrom?: KubeObject
  /** Whether the body must have a resourceVersion if the kind does not allow unconditional updates. */
  readonly requiresVersion: boolean
  /** Merges the part that a subresource such as finalize may change. Default: the rules of the kind. */
  merge?(newObject: AnyObject, old: AnyObject): AnyObject
}

/** `valuesMax` bounds the values of the object; see update-values.ts. */
export function updateVerb(
  target: WriteTarget,
  body: RequestBody,
  validation: FieldValidation,
  valuesMax: number,
): WriteVerb {
  const { object, warnings } = isScale(target)
    ? decodeScale(body, validation)
    : decodeObjectBody(body, target.resource, validation, valuesMax)
  checkHasName(target, object)
  const merge = MERGES[target.subresource]
  const update: Update = { compute: () => object, createFrom: object, requiresVersion: true, merge }
  return { do: 'update', target, update, warnings }
}

/** How a subresource changes the stored object. Those without an entry follow the rules of the kind. */
const MERGES: Readonly<Record<string, Update['merge']>> = { finalize: mergeFinalize, scale: mergeScale }

function checkHasName({ name }: WriteTarget, object: KubeObject): void {
  if (object.metadata.name) return
  throw badRequest(`metadata.name is missing from the body; it must be "${name}", as on the URL`)
}

/**
 * Plans the change to an existing object, or the create of a missing one if that is allowed. `isFollowed` is set if the next
 * write of the same commit updates the object again: this state is then not encoded.
 */
export function planUpdate(
  deps: ObjectDeps,
  target: WriteTarget,
  update: Update,
  view: TransactionView,
  isFollowed = false,
): WritePlan {
  const entry = view.get(keyOf(target))
  if (!entry) return planCreateFromUpdate(deps, target, update, view)
  const plan = planChange(deps, target, update, { entry, view, isFollowed })
  const isNotWritten = target.dryRun || plan.writes.length === 0
  return isNotWritten ? { ...plan, result: { ...plan.result, revision: entry.modRevision } } : plan
}

function planCreateFromUpdate(deps: ObjectDeps, target: WriteTarget, update: Update, view: TransactionView): WritePlan {
  const { kind } = target.resource
  if (update.isApply && !target.subresource) return planCreateFromApply(deps, target, update, view)
  if (!update.createFrom || !kind.allowsCreateOnUpdate || target.subresource)
    throw notFound(target.resource, target.name)
  target.authorizeCreate?.()
  const { metadata } = update.createFrom
  checkAddress(target, metadata)
  if (metadata.uid) {
    throw conflict(
      target.resource,
      target.name,
      `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: `,
    )
  }
  return planCreate(deps, target, update.createFrom, view)
}

function planCreateFromApply(deps: ObjectDeps, target: WriteTarget, update: Update, view: TransactionView): WritePlan {
  target.authorizeCreate?.()
  const object = update.compute(undefined, deps)
  const { name, uid, managedFields } = object.metadata
  checkAddress(target, object.metadata)
  if (uid) {
    const reason = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`
    throw conflict(target.resource, target.name, reason)
  }
  if (!name)
    throw badRequest(`the name of the object (${target.name} based on URL) was undeterminable: name must be provided`)
  checkCreateBody(target, object)
  return planCreate(deps, target, object, view, { owners: managedFields })
}

function planChange(
  deps: ObjectDeps,
  target: WriteTarget,
  update: Update,
  { entry, view, isFollowed }: { readonly entry: Entry; readonly view: TransactionView; readonly isFollowed: boolean },
): WritePlan {
  const { resource, name, subresource } = target
  const { kind } = resource
  const context = ruleContext(deps)
  const old = viewOf(resource, deps.objects.decode(entry))
  const requestedObject = update.compute(old, deps)
  checkIdentity(target, requestedObject, old, entry, update.requiresVersion)

  let newObject = mergeRequestedObject(target, update, requestedObject, old)
  newObject.metadata = withServerOwnedFields(kind, newObject.metadata, old.metadata)
  newObject = withDefaults(kind.type, newObject)
  kind.defaults?.(newObject)
  if (update.isApply) newObject.metadata.managedFields = requestedObject.metadata.managedFields
  else {
    const requestedEntries = requestedObject.metadata.managedFields
    trackUpdatedObject(deps, target, { next: newObject, old, requestedEntries })
  }
  const admissionInput = { operation: 'UPDATE', name, object: newObject, oldObject: old } as const
  const request = admissionRequest(deps, view, target, admissionInput)
  deps.admission.mutate(request)

  const errors = new FieldErrors()
  const isSpecUpdate = subresource === '' || isScale(target)
  const droppedWarnings = isSpecUpdate ? (kind.droppedFieldWarnings?.(newObject, old, context) ?? []) : []
  if (isSpecUpdate) kind.prepareForUpdate?.(newObject, old, context)
  else subresourceRules(target)?.prepare?.(newObject, old, context)
  if (!isSharedMetadata(newObject.metadata, old.metadata)) validateMeta(kind, newObject.metadata, errors)
  validateMetaUpdate(newObject.metadata, old.metadata, errors)
  if (isSpecUpdate) {
    kind.validate(newObject, errors, context, old)
    kind.validateUpdate?.(newObject, old, errors, context)
  } else if (subresource === 'finalize') kind.validate(newObject, errors, context, old)
  else subresourceRules(target)?.validate?.(newObject, old, errors, context)
  if (errors.hasErrors) throw invalid(kind, name, errors.list)

  if (
    kind.generationOf &&
    !jsonEquals(kind.generationOf(newObject) as JsonValue, kind.generationOf(old) as JsonValue)
  ) {
    newObject.metadata.generation = (old.metadata.generation ?? 0) + 1
  }
  newObject = storedObjectOf(resource, newObject)
  const remainingObject = isRemovable(newObject) ? undefined : newObject
  request.object = newObject
  request.resultingObject = remainingObject
  const admissionWrites = deps.admission.validate(request)
  const warnings = [...droppedWarnings, ...(kind.warnings?.(newObject, old) ?? [])]
  const key = keyOf(target)
  const change = { before: old, after: newObject }
  const isUnencoded = isFollowed && remainingObject !== undefined && !resource.storedKind.expiresAtMs
  if (isUnencoded || entry instanceof UnencodedEntry) {
    // A state between two writes of a commit has no bytes to compare.
    if (remainingObject && !entry.isStale && equalExceptTimes(newObject, old)) return unchangedPlan(entry, warnings)
    if (isUnencoded) return unencodedPlan(key, newObject, { admissionWrites, warnings, change })
  }
  const value = encodeStored(newObject)
  if (!remainingObject) {
    return {
      writes: [{ delete: key }, ...admissionWrites],
      result: { value, revision: 0, created: false, deleted: true, warnings },
      change: { before: old, after: undefined },
    }
  }
  // A stale value is written again, so that an update without changes encrypts it with the current key.
  const isComparable = !(entry instanceof UnencodedEntry) && !entry.isStale
  if (isComparable && isSameAsStored(deps, value, entry)) return unchangedPlan(entry, warnings)
  return {
    writes: [putOf(deps, resource, key, newObject, value), ...admissionWrites],
    result: { value, revision: 0, created: false, deleted: false, warnings },
    change,
  }
}

/** Returns the stored bytes, because the order of keys may differ and a resourceVersion identifies exact bytes. */
function unchangedPlan(entry: Entry, warnings: readonly string[]): WritePlan {
  const value = entry instanceof UnencodedEntry ? NO_VALUE : entry.value
  return { writes: [], result: { value, revision: 0, created: false, deleted: false, warnings } }
}

/**
 * Returns whether the value equals the stored object, apart from the times of managedFields and the order of keys, which do
 * not change the length.
 */
function isSameAsStored({ objects }: ObjectDeps, value: Uint8Array, entry: Entry): boolean {
  if (value.length !== entry.value.length) return false
  return (
    sameBytes(value, entry.value) || equalExceptTimes(decodeStored({ value, modRevision: 0 }), objects.decode(entry))
  )
}

/** Whether an object is marked for deletion and has neither finalizers nor a grace period. */
export function isRemovable(object: AnyObject): boolean {
  const { deletionTimestamp, finalizers, deletionGracePeriodSeconds } = object.metadata
  if (!deletionTimestamp || (finalizers && finalizers.length > 0)) return false
  if (deletionGracePeriodSeconds) return false // the node agent deletes a stopped pod with grace period 0
  return !(object.spec?.finalizers?.length > 0) // the namespace controller removes the finalizers in the spec
}

/** Rejects a body whose name differs from the URL, or whose uid or resourceVersion differs from the stored object. */
function checkIdentity(
  target: WriteTarget,
  requestedObject: AnyObject,
  old: AnyObject,
  entry: Entry,
  requiresVersion: boolean,
): void {
  const { resource, name } = target
  const { metadata } = requestedObject
  checkAddress(target, metadata)
  if (metadata.uid && metadata.uid !== old.metadata.uid) {
    throw conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${old.metadata.uid}`,
    )
  }
  const version = metadata.resourceVersion
  if (version && version !== '0') {
    if (!/^[1-9]\d{0,15}$/.test(version)) {
      throw badRequest(
        `metadata.resourceVersion: "${String(version).slice(0, 50)}" is not a resourceVersion of this server`,
      )
    }
    if (version !== String(entry.modRevision)) throw changedSinceRead(resource, name)
  } else if (requiresVersion && resource.kind.allowsUnconditionalUpdate === false) {
    const errors = new FieldErrors()
    errors.invalid('metadata.resourceVersion', version ?? '', 'must be specified for an update')
    throw invalid(resource.kind, name, errors.list)
  }
}

function checkAddress({ resource, name, namespace }: WriteTarget, metadata: ObjectMeta): void {
  if (metadata.name && metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
  }
  if (resource.kind.namespaced && metadata.namespace && metadata.namespace !== namespace) {
    throw badRequest(
      `the namespace of the object (${metadata.namespace}) does not match the namespace on the URL (${namespace})`,
    )
  }
}

/** Returns the stored object with the part of the body that the endpoint may change. */
function mergeRequestedObject(
  target: WriteTarget,
  update: Update,
  requestedObject: AnyObject,
  old: AnyObject,
): AnyObject {
  if (update.merge) return update.merge(requestedObject, old)
  const { kind } = target.resource
  const rules = kind.status
  if (target.subresource === 'status') {
    const { metadata } = rules?.acceptsMetadata ? requestedObject : old
    return draftOf(kind, { ...old, metadata, status: requestedObject.status }, old)
  }
  if (target.subresource === 'approval') {
    return draftOf(kind, { ...old, status: { ...old.status, conditions: requestedObject.status?.conditions } }, old)
  }
  if (target.subresource === 'ephemeralcontainers') {
    const { ephemeralContainers } = requestedObject.spec ?? {}
    return draftOf(kind, { ...old, spec: { ...old.spec, ephemeralContainers } }, old)
  }
  return draftOf(kind, rules ? { ...requestedObject, status: old.status } : requestedObject, old)
}

function subresourceRules({ resource: { kind }, subresource }: WriteTarget) {
  if (subresource === 'approval') return kind.approval
  return subresource === 'ephemeralcontainers' ? kind.ephemeralContainers : kind.status
}

/** PUT namespaces/NAME/finalize changes spec.finalizers only. */
function mergeFinalize(requestedObject: AnyObject, old: AnyObject): AnyObject {
  const newObject = clone(old)
  const finalizers = requestedObject.spec?.finalizers ?? []
  if (finalizers.length > 0) newObject.spec = { ...newObject.spec, finalizers: clone(finalizers) }
  else if (newObject.spec) delete newObject.spec.finalizers
  return newObject
}

/**
 * Returns a draft, whose metadata `withServerOwnedFields` copies. It shares with the stored object what the request does not change:
 * withDefaults and the rules of a kind replace the parts that they change.
 */
function draftOf(kind: Kind, object: AnyObject, old: AnyObject): AnyObject {
  const copy = copyFor(kind)
  const draft: AnyObject = {}
  for (const field in object) {
    const value = object[field]
    if (field === 'metadata') draft.metadata = value
    else if (field !== 'status' || value !== undefined) draft[field] = copy(value, old[field])
  }
  return draft
}

/** Kind.defaults may change any part, so the drafts of such a kind share nothing. */
const copyFor = ({ defaults }: Kind): typeof cloneChanged => (defaults ? clone : cloneChanged)

/** Whether all fields, apart from managedFields, are those of the stored object, which is valid. */
function isSharedMetadata(metadata: AnyObject, old: AnyObject): boolean {
  for (const field in metadata) if (field !== 'managedFields' && metadata[field] !== old[field]) return false
  return true
}

/** Copies the requested metadata. Fields that only the server sets are those of the stored object. */
function withServerOwnedFields(kind: Kind, requested: AnyObject, old: AnyObject): AnyObject {
  const copy = copyFor(kind)
  const metadata: AnyObject = {}
  // A loop without `delete`, so that the objects of a kind have the same compact layout in memory.
  for (const field in requested) {
    if (SERVER_OWNED_METADATA.has(field)) {
      if (old[field] !== undefined) metadata[field] = old[field]
    } else if (!DROPPED_METADATA.has(field)) metadata[field] = copy(requested[field], old[field])
  }
  for (const field of SERVER_OWNED_METADATA)
    if (metadata[field] === undefined && old[field] !== undefined) metadata[field] = old[field]
  return metadata
}

const SERVER_OWNED_METADATA: ReadonlySet<string> = new Set([
  'name',
  'uid',
  'creationTimestamp',
  'namespace',
  'generateName',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
])
/** managedFields are large and set separately. */
const DROPPED_METADATA: ReadonlySet<string> = new Set(['resourceVersion', 'selfLink', 'managedFields'])
