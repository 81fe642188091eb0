// PUT and PATCH, on the object or one of its subresources. The new state is computed from the stored one
// inside the transaction, so two writers can never undo each other unseen and a patch never conflicts with itself.
import { applyDefaults } from '../../api/defaults.ts'
import { FieldErrors } from '../../api/field-errors.ts'
import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { KubeObject } from '../../api/kind.ts'
import { validateMeta, validateMetaUpdate } from '../../api/meta.ts'
import { badRequest, changedSinceRead, conflict, invalid, notFound } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import type { Entry, TransactionView } from '../../store/index.ts'
import { sameButForTimes, trackUpdated } from '../objects/managed-fields.ts'
import { decodeStored, encodeStored, sameBytes } from '../objects/stored-object.ts'
import {
  admissionRequest,
  type Decided,
  faceOf,
  keyOf,
  type ObjectDeps,
  putOf,
  ruleContext,
  storedOf,
  transactOne,
  type WriteTarget,
  type Written,
  writesOf,
} from '../objects/write-deps.ts'
import { tellingRefusals } from '../refusal-events.ts'
import { checkBody, decideCreate } from './create.ts'

export interface Update {
  /** The wanted object, given the stored one (frozen). Runs inside the transaction, possibly more than once. */
  next(old: any, deps: ObjectDeps): any
  /** An apply: `next` knows the owners of its fields, and makes a new object where there is none. */
  readonly applies?: true
  /** The body of a PUT, for kinds that an update may create. */
  readonly createFrom?: KubeObject
  /** A PUT must carry the version it read, where its kind says so; a patch need not. */
  readonly needsVersion: boolean
  /** Takes over what /status, /finalize and their like may change. Absent: the subresource rules of the kind. */
  merge?(next: any, old: any): any
}

export async function updateObject(deps: ObjectDeps, target: WriteTarget, update: Update): Promise<Written> {
  return tellingRefusals(deps, () => transactOne(deps, target, (view) => decideUpdate(deps, target, update, view)))
}

/** The transaction of an update; where its kind allows it and the object is missing, that of a create. */
export function decideUpdate(deps: ObjectDeps, target: WriteTarget, update: Update, view: TransactionView): Decided {
  const entry = view.get(keyOf(target))
  if (!entry) return decideCreateFromUpdate(deps, target, update, view)
  const { writes, written } = decideChange(deps, target, update, entry, view)
  const isKept = target.dryRun || writes.length === 0
  return { writes, written: isKept ? { ...written, revision: entry.modRevision } : written }
}

function decideCreateFromUpdate(deps: ObjectDeps, target: WriteTarget, update: Update, view: TransactionView) {
  const { kind } = target.resource
  if (update.applies && !target.subresource) return decideCreateFromApply(deps, target, update, view)
  if (!update.createFrom || !kind.createOnUpdate || target.subresource) throw notFound(target.resource, target.name)
  const { metadata } = update.createFrom
  checkAddress(target, metadata)
  if (metadata.uid) {
    throw conflict(
      target.resource,
      target.name,
      `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: `,
    )
  }
  return decideCreate(deps, target, update.createFrom, view)
}

function decideCreateFromApply(deps: ObjectDeps, target: WriteTarget, update: Update, view: TransactionView): Decided {
  const object = update.next(undefined, deps)
  const { name, uid, managedFields } = object.metadata
  checkAddress(target, object.metadata)
  if (uid) {
    const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`
    throw conflict(target.resource, target.name, why)
  }
  if (!name)
    throw badRequest(`the name of the object (${target.name} based on URL) was undeterminable: name must be provided`)
  checkBody(target, object)
  return decideCreate(deps, target, object, view, managedFields)
}

function decideChange(
  deps: ObjectDeps,
  target: WriteTarget,
  update: Update,
  entry: Entry,
  view: TransactionView,
): Decided {
  const { resource, name, subresource } = target
  const { kind } = resource
  const context = ruleContext(deps)
  const old = faceOf(resource, deps.objects.decode(entry))
  const asked = update.next(old, deps)
  checkIdentity(target, asked, old, entry, update.needsVersion)

  let next = merged(target, update, asked, old)
  next.metadata = keepServerOwned(next.metadata, old.metadata)
  applyDefaults(kind.type, next)
  kind.defaults?.(next)
  if (update.applies) next.metadata.managedFields = asked.metadata.managedFields
  else trackUpdated(deps, target, { next, old, asked: asked.metadata.managedFields })
  const admitted = { operation: 'UPDATE', name, object: next, old } as const
  const request = admissionRequest(deps, view, target, admitted)
  deps.admission.mutate(request)

  const errors = new FieldErrors()
  if (subresource === '') kind.prepareForUpdate?.(next, old, context)
  else if (subresource === 'status') kind.status?.prepare?.(next, old, context)
  validateMeta(kind, next.metadata, errors)
  validateMetaUpdate(next.metadata, old.metadata, errors)
  if (subresource === '') {
    kind.validate(next, errors, context, old)
    kind.validateUpdate?.(next, old, errors, context)
  } else if (subresource === 'status') kind.status?.validate?.(next, old, errors, context)
  else kind.validate(next, errors, context, old)
  if (errors.any) throw invalid(kind, name, errors.list)

  if (kind.generationOf && !jsonEquals(kind.generationOf(next) as JsonValue, kind.generationOf(old) as JsonValue)) {
    next.metadata.generation = (old.metadata.generation ?? 0) + 1
  }
  next = storedOf(resource, next)
  const after = isReadyToGo(next) ? undefined : next
  const more = deps.admission.validate({ ...request, object: next, after })
  const value = encodeStored(next)
  const warnings = kind.warnings?.(next, old) ?? []
  const key = keyOf(target)
  if (!after) {
    return {
      writes: writesOf({ delete: key }, more),
      written: { value, revision: 0, created: false, deleted: true, warnings },
    }
  }
  if (isAsStored(deps, value, entry)) {
    // The stored bytes, not the equal ones just made: one version is one text.
    return { writes: [], written: { value: entry.value, revision: 0, created: false, deleted: false, warnings } }
  }
  return {
    writes: writesOf(putOf(deps, resource, key, next, value), more),
    written: { value, revision: 0, created: false, deleted: false, warnings },
  }
}

/** Other times of managers, and keys in another order, make other bytes, but just as many of them. */
function isAsStored({ objects }: ObjectDeps, value: Uint8Array, entry: Entry): boolean {
  if (value.length !== entry.value.length) return false
  return (
    sameBytes(value, entry.value) || sameButForTimes(decodeStored({ value, modRevision: 0 }), objects.decode(entry))
  )
}

/** Being deleted, and the last thing that held it back was taken away. */
export function isReadyToGo(object: any): boolean {
  const { deletionTimestamp, finalizers, deletionGracePeriodSeconds } = object.metadata
  if (!deletionTimestamp || (finalizers && finalizers.length > 0)) return false
  if (deletionGracePeriodSeconds) return false // a pod still has its time
  return !(object.spec?.finalizers?.length > 0) // a namespace is emptied first
}

/** The body says which object it means: same name and namespace, same uid and version where it gives them. */
function checkIdentity(target: WriteTarget, asked: any, old: any, entry: Entry, needsVersion: boolean): void {
  const { resource, name } = target
  const { metadata } = asked
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
        `metadata.resourceVersion: "${String(version).slice(0, 50)}" is not a version this server handed out`,
      )
    }
    if (version !== String(entry.modRevision)) throw changedSinceRead(resource, name)
  } else if (needsVersion && resource.kind.unconditionalUpdate === false) {
    const errors = new FieldErrors()
    errors.invalid('metadata.resourceVersion', version ?? '', 'must be specified for an update')
    throw invalid(resource.kind, name, errors.list)
  }
}

function checkAddress({ resource, name, namespace }: WriteTarget, metadata: any): void {
  if (metadata.name && metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`)
  }
  if (resource.kind.namespaced && metadata.namespace && metadata.namespace !== namespace) {
    throw badRequest(
      `the namespace of the object (${metadata.namespace}) does not match the namespace on the URL (${namespace})`,
    )
  }
}

/** Which parts of the body count, by endpoint. */
function merged(target: WriteTarget, update: Update, asked: any, old: any): any {
  if (update.merge) return update.merge(asked, old)
  const rules = target.resource.kind.status
  if (target.subresource === 'status') {
    const { metadata } = rules?.acceptsMetadata ? asked : old
    return draftOf({ ...old, metadata, status: asked.status })
  }
  return draftOf(rules ? { ...asked, status: old.status } : asked)
}

/** A copy to change; the record of owners, which is large and comes from elsewhere, is not copied. */
function draftOf(object: any): any {
  const next = clone({ ...object, metadata: { ...object.metadata, managedFields: undefined } })
  if (next.status === undefined) delete next.status
  return next
}

function keepServerOwned(meta: any, old: any): any {
  const { resourceVersion: _, selfLink: __, managedFields: ___, ...rest } = meta
  const kept = { ...rest, name: old.name, uid: old.uid, creationTimestamp: old.creationTimestamp }
  for (const field of ['namespace', 'generateName', 'deletionTimestamp', 'deletionGracePeriodSeconds', 'generation']) {
    if (old[field] === undefined) delete kept[field]
    else kept[field] = old[field]
  }
  return kept
}
