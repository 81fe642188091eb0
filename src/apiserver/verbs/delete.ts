// DELETE: removes an object, or sets its deletionTimestamp if it has finalizers or a grace period.
import { conflict, notFound } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import type { Entry, TransactionView } from '../../store/index.ts'
import { admissionRequest } from '../admission/admission-request.ts'
import type { DeleteOptions } from '../http/options.ts'
import { type AnyObject, type ObjectDeps, putOf, timestamp } from '../objects/object-deps.ts'
import { encodeStored, sameContent } from '../objects/stored-object.ts'
import { keyOf, NO_WARNINGS, type WritePlan, type WriteTarget, type WriteVerb } from '../objects/write-verb.ts'
import { isRemovable } from './update.ts'

export const deleteVerb = (target: WriteTarget, options: DeleteOptions): WriteVerb => ({
  do: 'delete',
  target,
  options,
  warnings: NO_WARNINGS,
})

export function planDelete(
  deps: ObjectDeps,
  target: WriteTarget,
  options: DeleteOptions,
  view: TransactionView,
): WritePlan {
  const key = keyOf(target)
  const entry = view.get(key)
  if (!entry) throw notFound(target.resource, target.name)
  const old: AnyObject = deps.objects.decode(entry)
  checkPreconditions(target, options, old, entry)
  const next = markedForDeletion(deps, target, options, old)
  const deleted = isRemovable(next)
  const after = deleted ? undefined : next
  const request = { operation: 'DELETE', name: target.name, object: undefined, old, after } as const
  const admissionWrites = deps.admission.validate(admissionRequest(deps, view, target, request))
  const result = { created: false, deleted, warnings: NO_WARNINGS }
  const revision = target.dryRun ? entry.modRevision : 0
  if (deleted) {
    return { writes: [{ delete: key }, ...admissionWrites], result: { ...result, value: entry.value, revision } }
  }
  const value = encodeStored(next)
  if (sameContent(value, entry.value)) {
    return { writes: [], result: { ...result, value, revision: entry.modRevision } }
  }
  const put = putOf(deps, target.resource, key, next, value)
  return { writes: [put, ...admissionWrites], result: { ...result, value, revision } }
}

function checkPreconditions(
  { resource, name }: WriteTarget,
  options: DeleteOptions,
  old: AnyObject,
  entry: Entry,
): void {
  if (options.uid !== undefined && options.uid !== old.metadata.uid) {
    throw conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${old.metadata.uid}`,
    )
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== String(entry.modRevision)) {
    throw conflict(
      resource,
      name,
      `Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}, ResourceVersion in object meta: ${entry.modRevision}`,
    )
  }
}

/** The object with its deletionTimestamp. A second delete may only shorten the grace period. */
function markedForDeletion(
  deps: ObjectDeps,
  { resource }: WriteTarget,
  options: DeleteOptions,
  old: AnyObject,
): AnyObject {
  const next = clone(old)
  const { metadata } = next
  const nowMs = deps.clock.nowMs()
  const graceSeconds = resource.stored.gracePeriodSeconds?.(old, options.gracePeriodSeconds) ?? 0

  metadata.finalizers = propagationFinalizers(metadata.finalizers ?? [], options.propagation)
  if (metadata.finalizers.length === 0) delete metadata.finalizers
  if (!metadata.deletionTimestamp) {
    metadata.deletionTimestamp = timestamp(nowMs + graceSeconds * 1000)
    metadata.deletionGracePeriodSeconds = graceSeconds
    if (metadata.generation > 0) metadata.generation += 1
  } else if (graceSeconds < (metadata.deletionGracePeriodSeconds ?? 0)) {
    // A deletionTimestamp never moves back: if it has passed, the shorter grace period must not extend it.
    const sooner = timestamp(nowMs + graceSeconds * 1000)
    if (sooner < metadata.deletionTimestamp) metadata.deletionTimestamp = sooner
    metadata.deletionGracePeriodSeconds = graceSeconds
  }
  if (resource.stored.group === '' && resource.stored.plural === 'namespaces') {
    next.status = { ...next.status, phase: 'Terminating' }
  }
  return next
}

/** Foreground waits until the dependents are deleted, Orphan until they are orphaned; Background does not wait. */
function propagationFinalizers(finalizers: readonly string[], propagation: DeleteOptions['propagation']): string[] {
  if (propagation === undefined) return [...finalizers]
  const others = finalizers.filter((finalizer) => finalizer !== 'orphan' && finalizer !== 'foregroundDeletion')
  if (propagation === 'Orphan') return [...others, 'orphan']
  if (propagation === 'Foreground') return [...others, 'foregroundDeletion']
  return others
}
