// DELETE: an object goes at once, or is marked as going and waits for its finalizers and its grace period.

import { conflict, notFound } from '../../api/status-error.ts'
import { clone } from '../../base/clone.ts'
import type { Entry, TransactionView } from '../../store/index.ts'
import type { DeleteOptions } from '../http/options.ts'
import { encodeStored, sameContent } from '../objects/stored-object.ts'
import {
  admissionRequest,
  type Decided,
  keyOf,
  type ObjectDeps,
  putOf,
  timestamp,
  transactOne,
  type WriteTarget,
  type Written,
  writesOf,
} from '../objects/write-deps.ts'
import { isReadyToGo } from './update.ts'

export async function deleteObject(deps: ObjectDeps, target: WriteTarget, options: DeleteOptions): Promise<Written> {
  return transactOne(deps, target, (view) => decideDelete(deps, target, options, view))
}

/** The transaction of a delete. */
export function decideDelete(
  deps: ObjectDeps,
  target: WriteTarget,
  options: DeleteOptions,
  view: TransactionView,
): Decided {
  const key = keyOf(target)
  const entry = view.get(key)
  if (!entry) throw notFound(target.resource, target.name)
  const old: any = deps.objects.decode(entry)
  checkPreconditions(target, options, old, entry)
  const next = marked(deps, target, options, old)
  const deleted = isReadyToGo(next)
  const after = deleted ? undefined : next
  const request = { operation: 'DELETE', name: target.name, object: undefined, old, after } as const
  const more = deps.admission.validate(admissionRequest(deps, view, target, request))
  const written = { created: false, deleted, warnings: [] }
  if (deleted) {
    const revision = target.dryRun ? entry.modRevision : 0
    return { writes: writesOf({ delete: key }, more), written: { ...written, value: entry.value, revision } }
  }
  const value = encodeStored(next)
  if (sameContent(value, entry.value)) {
    return { writes: [], written: { ...written, value, revision: entry.modRevision } }
  }
  const revision = target.dryRun ? entry.modRevision : 0
  const own = putOf(deps, target.resource, key, next, value)
  return { writes: writesOf(own, more), written: { ...written, value, revision } }
}

function checkPreconditions({ resource, name }: WriteTarget, options: DeleteOptions, old: any, entry: Entry): void {
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

/** The object as one that is going away. A second delete may only shorten what is left. */
function marked(deps: ObjectDeps, { resource }: WriteTarget, options: DeleteOptions, old: any): any {
  const next = clone(old)
  const { metadata } = next
  const nowMs = deps.clock.nowMs()
  const graceSeconds = resource.stored.gracePeriodSeconds?.(old, options.gracePeriodSeconds) ?? 0

  metadata.finalizers = propagated(metadata.finalizers ?? [], options.propagation)
  if (metadata.finalizers.length === 0) delete metadata.finalizers
  if (!metadata.deletionTimestamp) {
    metadata.deletionTimestamp = timestamp(nowMs + graceSeconds * 1000)
    metadata.deletionGracePeriodSeconds = graceSeconds
    if (metadata.generation > 0) metadata.generation += 1
  } else if (graceSeconds < (metadata.deletionGracePeriodSeconds ?? 0)) {
    // Never put off: what should be gone already does not get more time.
    const sooner = timestamp(nowMs + graceSeconds * 1000)
    if (sooner < metadata.deletionTimestamp) metadata.deletionTimestamp = sooner
    metadata.deletionGracePeriodSeconds = graceSeconds
  }
  if (resource.stored.group === '' && resource.stored.plural === 'namespaces') {
    next.status = { ...next.status, phase: 'Terminating' }
  }
  return next
}

/** Who waits for whom: foreground waits for the dependents, orphan for letting them go, background for nobody. */
function propagated(finalizers: readonly string[], propagation: DeleteOptions['propagation']): string[] {
  if (propagation === undefined) return [...finalizers]
  const others = finalizers.filter((finalizer) => finalizer !== 'orphan' && finalizer !== 'foregroundDeletion')
  if (propagation === 'Orphan') return [...others, 'orphan']
  if (propagation === 'Foreground') return [...others, 'foregroundDeletion']
  return others
}
