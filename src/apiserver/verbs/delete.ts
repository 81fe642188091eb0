// DELETE: removes an object, or sets its deletionTimestamp if it has finalizers or a grace period.
import { conflict, notFound } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import { timestamp } from '../../base/timestamps.ts'
import type { Entry, TransactionView } from '../../store/index.ts'
import { admissionRequest } from '../admission/admission-request.ts'
import type { DeleteOptions } from '../http/options.ts'
import { type AnyObject, type ObjectDeps, putOf } from '../objects/object-deps.ts'
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
  const currentObject: AnyObject = deps.objects.decode(entry)
  checkPreconditions(target, options, currentObject, entry)
  const markedObject = markForDeletion(deps, target, options, currentObject)
  const isRemoved = isRemovable(markedObject)
  const remainingObject = isRemoved ? undefined : markedObject
  const request = {
    operation: 'DELETE',
    name: target.name,
    object: undefined,
    oldObject: currentObject,
    resultingObject: remainingObject,
  } as const
  const admissionWrites = deps.admission.validate(admissionRequest(deps, view, target, request))
  const result = { created: false, deleted: isRemoved, warnings: NO_WARNINGS }
  const revision = target.dryRun ? entry.modRevision : 0
  if (isRemoved) {
    return {
      writes: [{ delete: key }, ...admissionWrites],
      result: { ...result, value: entry.value, revision },
      change: { before: currentObject, after: undefined },
    }
  }
  const value = encodeStored(markedObject)
  if (sameContent(value, entry.value)) {
    return { writes: [], result: { ...result, value, revision: entry.modRevision } }
  }
  const put = putOf(deps, target.resource, key, markedObject, value)
  return {
    writes: [put, ...admissionWrites],
    result: { ...result, value, revision },
    change: { before: currentObject, after: markedObject },
  }
}

function checkPreconditions(
  { resource, name }: WriteTarget,
  options: DeleteOptions,
  currentObject: AnyObject,
  entry: Entry,
): void {
  if (options.uid !== undefined && options.uid !== currentObject.metadata.uid) {
    throw conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${currentObject.metadata.uid}`,
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

/** Returns the object with its deletionTimestamp. Later deletes can only shorten the grace period. */
function markForDeletion(
  deps: ObjectDeps,
  { resource }: WriteTarget,
  options: DeleteOptions,
  currentObject: AnyObject,
): AnyObject {
  const markedObject = clone(currentObject)
  const { metadata } = markedObject
  const nowMs = deps.clock.nowMs()
  const graceSeconds = resource.storedKind.gracePeriodSeconds?.(currentObject, options.gracePeriodSeconds) ?? 0

  metadata.finalizers = propagationFinalizers(metadata.finalizers ?? [], options.propagationPolicy)
  if (metadata.finalizers.length === 0) delete metadata.finalizers
  if (!metadata.deletionTimestamp) {
    metadata.deletionTimestamp = timestamp(nowMs + graceSeconds * 1000)
    metadata.deletionGracePeriodSeconds = graceSeconds
    if (metadata.generation > 0) metadata.generation += 1
  } else if (graceSeconds < (metadata.deletionGracePeriodSeconds ?? 0)) {
    // A deletionTimestamp must not increase, even if it has passed already.
    const earlierTimestamp = timestamp(nowMs + graceSeconds * 1000)
    if (earlierTimestamp < metadata.deletionTimestamp) metadata.deletionTimestamp = earlierTimestamp
    metadata.deletionGracePeriodSeconds = graceSeconds
  }
  if (resource.storedKind.group === '' && resource.storedKind.plural === 'namespaces') {
    markedObject.status = { ...markedObject.status, phase: 'Terminating' }
  }
  return markedObject
}

/** Adds the finalizer of the propagation policy. The garbage collector removes it after processing the dependents. */
function propagationFinalizers(
  finalizers: readonly string[],
  propagation: DeleteOptions['propagationPolicy'],
): string[] {
  if (propagation === undefined) return [...finalizers]
  const otherFinalizers = finalizers.filter((finalizer) => finalizer !== 'orphan' && finalizer !== 'foregroundDeletion')
  if (propagation === 'Orphan') return [...otherFinalizers, 'orphan']
  if (propagation === 'Foreground') return [...otherFinalizers, 'foregroundDeletion']
  return otherFinalizers
}
