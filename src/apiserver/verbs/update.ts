// PUT, and the transaction that PUT, patch.ts and apply.ts share. The new state of an object or subresource is computed
// from the stored one inside the transaction, so that a patch without a resourceVersion does not conflict.
import { applyDefaults } from '../../api/defaults.ts'
import { FieldErrors } from '../../api/field-errors.ts'
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { KubeObject } from '../../api/kind.ts'
import type { ObjectMeta } from '../../api/kinds/shared/meta-schema.ts'
import { validateMeta, validateMetaUpdate } from '../../api/meta.ts'
import { badRequest, changedSinceRead, conflict, invalid, notFound } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import type { Entry, TransactionView } from '../../store/index.ts'
import { admissionRequest } from '../admission/admission-request.ts'
import { decodeObjectBody, type RequestBody } from '../http/body.ts'
import type { FieldValidation } from '../http/options.ts'
import { equalExceptTimes, trackUpdated } from '../objects/managed-fields.ts'
import { type AnyObject, type ObjectDeps, putOf, ruleContext, storedOf, viewOf } from '../objects/object-deps.ts'
import { decodeStored, encodeStored, sameBytes } from '../objects/stored-object.ts'
import { keyOf, type WritePlan, type WriteTarget, type WriteVerb } from '../objects/write-verb.ts'
import { checkCreateBody, planCreate } from './create.ts'

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
  merge?(next: AnyObject, old: AnyObject): AnyObject
}

/** `valuesMax` bounds the values of the object; see update-values.ts. */
export function updateVerb(
  target: WriteTarget,
  body: RequestBody,
  validation: FieldValidation,
  valuesMax: number,
): WriteVerb {
  const { object, warnings } = decodeObjectBody(body, target.resource, validation, valuesMax)
  checkHasName(target, object)
  const merge = target.subresource === 'finalize' ? mergeFinalize : undefined
  const update: Update = { compute: () => object, createFrom: object, requiresVersion: true, merge }
  return { do: 'update', target, update, warnings }
}

function checkHasName({ name }: WriteTarget, object: KubeObject): void {
  if (object.metadata.name) return
  throw badRequest(`metadata.name is missing from the body; it must be "${name}", as on the URL`)
}

/** Plans the change of an existing object, or the create of a missing one if that is allowed. */
export function planUpdate(deps: ObjectDeps, target: WriteTarget, update: Update, view: TransactionView): WritePlan {
  const entry = view.get(keyOf(target))
  if (!entry) return planCreateFromUpdate(deps, target, update, view)
  const { writes, result } = planChange(deps, target, update, entry, view)
  const isUnchanged = target.dryRun || writes.length === 0
  return { writes, result: isUnchanged ? { ...result, revision: entry.modRevision } : result }
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
  return planCreate(deps, target, object, view, managedFields)
}

function planChange(
  deps: ObjectDeps,
  target: WriteTarget,
  update: Update,
  entry: Entry,
  view: TransactionView,
): WritePlan {
  const { resource, name, subresource } = target
  const { kind } = resource
  const context = ruleContext(deps)
  const old = viewOf(resource, deps.objects.decode(entry))
  const requested = update.compute(old, deps)
  checkIdentity(target, requested, old, entry, update.requiresVersion)

  let next = mergeRequested(target, update, requested, old)
  next.metadata = keepServerOwned(next.metadata, old.metadata)
  applyDefaults(kind.type, next)
  kind.defaults?.(next)
  if (update.isApply) next.metadata.managedFields = requested.metadata.managedFields
  else trackUpdated(deps, target, { next, old, requested: requested.metadata.managedFields })
  const admissionInput = { operation: 'UPDATE', name, object: next, old } as const
  const request = admissionRequest(deps, view, target, admissionInput)
  deps.admission.mutate(request)

  const errors = new FieldErrors()
  const droppedWarnings = subresource === '' ? (kind.droppedFieldWarnings?.(next, old, context) ?? []) : []
  if (subresource === '') kind.prepareForUpdate?.(next, old, context)
  else subresourceRules(target)?.prepare?.(next, old, context)
  validateMeta(kind, next.metadata, errors)
  validateMetaUpdate(next.metadata, old.metadata, errors)
  if (subresource === '') {
    kind.validate(next, errors, context, old)
    kind.validateUpdate?.(next, old, errors, context)
  } else if (subresource === 'finalize') kind.validate(next, errors, context, old)
  else subresourceRules(target)?.validate?.(next, old, errors, context)
  if (errors.hasErrors) throw invalid(kind, name, errors.list)

  if (kind.generationOf && !jsonEquals(kind.generationOf(next) as JsonValue, kind.generationOf(old) as JsonValue)) {
    next.metadata.generation = (old.metadata.generation ?? 0) + 1
  }
  next = storedOf(resource, next)
  const after = isRemovable(next) ? undefined : next
  const admissionWrites = deps.admission.validate({ ...request, object: next, after })
  const value = encodeStored(next)
  const warnings = [...droppedWarnings, ...(kind.warnings?.(next, old) ?? [])]
  const key = keyOf(target)
  if (!after) {
    return {
      writes: [{ delete: key }, ...admissionWrites],
      result: { value, revision: 0, created: false, deleted: true, warnings },
    }
  }
  // A stale value is written again, so that an update without changes encrypts it with the current key.
  if (!entry.isStale && isSameAsStored(deps, value, entry)) {
    // Return the stored bytes, because the order of keys may differ and a resourceVersion identifies exact bytes.
    return { writes: [], result: { value: entry.value, revision: 0, created: false, deleted: false, warnings } }
  }
  return {
    writes: [putOf(deps, resource, key, next, value), ...admissionWrites],
    result: { value, revision: 0, created: false, deleted: false, warnings },
  }
}

/** Compares with the stored object without the times of managedFields and the order of keys, which do not change the length. */
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
  return !(object.spec?.finalizers?.length > 0) // removed by the namespace controller
}

/** Rejects a body whose name differs from the URL, or whose uid or resourceVersion differs from the stored object. */
function checkIdentity(
  target: WriteTarget,
  requested: AnyObject,
  old: AnyObject,
  entry: Entry,
  requiresVersion: boolean,
): void {
  const { resource, name } = target
  const { metadata } = requested
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
function mergeRequested(target: WriteTarget, update: Update, requested: AnyObject, old: AnyObject): AnyObject {
  if (update.merge) return update.merge(requested, old)
  const rules = target.resource.kind.status
  if (target.subresource === 'status') {
    const { metadata } = rules?.acceptsMetadata ? requested : old
    return draftOf({ ...old, metadata, status: requested.status })
  }
  if (target.subresource === 'approval') {
    return draftOf({ ...old, status: { ...old.status, conditions: requested.status?.conditions } })
  }
  return draftOf(rules ? { ...requested, status: old.status } : requested)
}

const subresourceRules = ({ resource: { kind }, subresource }: WriteTarget) =>
  subresource === 'approval' ? kind.approval : kind.status

/** PUT namespaces/NAME/finalize changes spec.finalizers only. */
function mergeFinalize(requested: AnyObject, old: AnyObject): AnyObject {
  const next = clone(old)
  const finalizers = requested.spec?.finalizers ?? []
  if (finalizers.length > 0) next.spec = { ...next.spec, finalizers: clone(finalizers) }
  else if (next.spec) delete next.spec.finalizers
  return next
}

/** Returns a mutable copy without managedFields, which are large and set separately. */
function draftOf(object: AnyObject): AnyObject {
  const next = clone({ ...object, metadata: { ...object.metadata, managedFields: undefined } })
  if (next.status === undefined) delete next.status
  return next
}

function keepServerOwned(meta: AnyObject, old: AnyObject): AnyObject {
  const { resourceVersion: _, selfLink: __, managedFields: ___, ...otherFields } = meta
  const merged = { ...otherFields, name: old.name, uid: old.uid, creationTimestamp: old.creationTimestamp }
  for (const field of ['namespace', 'generateName', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'generation']) {
    if (old[field] === undefined) delete merged[field]
    else merged[field] = old[field]
  }
  return merged
}
