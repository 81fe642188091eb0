// Reconciles one volume: applies the plan of plan-volume.ts. Deletes the storage of a released volume and then the PV, and
// maintains the finalizer that keeps the PV until its storage is deleted.

import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { CommitWrite, ObjectKey, ObjectRef } from '../../client/index.ts'
import { backOff, done, type Outcome, stuck } from '../../runtime/index.ts'
import { DELETION_REQUESTED_ANNOTATION, isDeletionRequested } from '../../volumes/deletion-requested.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import type { ProvisioningContext } from './context.ts'
import { deleteFailedEvent } from './events.ts'
import { isMissingOrReplaced } from './intent.ts'
import { inUseReason, planVolume } from './plan-volume.ts'
import type { DeleteResult } from './provisioner.ts'

export const BY_VOLUME = 'provisioning: volume'

export async function reconcileVolume(
  key: ObjectKey,
  context: ProvisioningContext,
  signal: AbortSignal,
): Promise<Outcome> {
  const { volumes, provisioner, settings } = context
  const volume = volumes.get(key)
  if (!volume) return done
  const action = planVolume(volume, provisioner, settings.volumeFinalizer)
  switch (action.do) {
    case 'nothing':
      return done
    case 'addFinalizer': {
      const { uid, resourceVersion } = volume.metadata
      return patchFinalizers(volume, { uid, resourceVersion, finalizers: [settings.volumeFinalizer] }, context)
    }
    case 'removeFinalizer':
      return patchFinalizers(volume, removeFinalizerPatch(volume, settings.volumeFinalizer), context)
    case 'delete':
      return deleteVolume(volume, context, signal)
  }
}

async function deleteVolume(cached: Volume, context: ProvisioningContext, signal: AbortSignal): Promise<Outcome> {
  const { provisioner, settings, attachments, election, metrics, clock } = context
  const { name, uid } = cached.metadata
  const [attachment] = attachments.byIndex(BY_VOLUME, name)
  if (attachment) {
    const message = `persistentvolume ${name} is still attached to node ${attachment.spec?.nodeName}`
    context.events.record(persistentVolumeKind, cached, deleteFailedEvent(message))
    return stuck(message)
  }
  // Read the volume and the claim from the server: the cache may be behind, and deletion cannot be undone. Update the
  // cache, so that a later event is recognized as a change of this state and triggers another reconcile.
  const volume = await findLive(persistentVolumeKind, { name }, context)
  if (!volume || volume.metadata.uid !== uid) return done
  context.volumes.applyWriteResult(volume)
  if (planVolume(volume, provisioner, settings.volumeFinalizer).do !== 'delete') return done
  const usage = inUseReason(volume, await findClaim(volume, context))
  if (usage !== undefined) return stuck(usage)
  // The next process would create the volume again if its intent were still recorded after a crash.
  await context.journal?.whenRemoved(volume.spec?.claimRef?.uid ?? '')

  if (!isDeletionRequested(volume) && !(await markDeletionRequested(volume, context)))
    return backOff('the volume changed during the reconcile')
  election?.assertStillLeader()
  const startedMs = clock.monotonicMs()
  const result = await callProvisioner(volume, context, signal)
  switch (result.is) {
    case 'ignored':
      return done
    case 'failed':
      metrics?.recordDeleteFailure(volume)
      context.events.record(persistentVolumeKind, volume, deleteFailedEvent(result.message))
      return result.isForeign
        ? releaseForeign(volume, result.message, context)
        : backOff(result.message, result.details)
    case 'deleted':
  }
  const outcome = await deleteVolumeObject(volume, context)
  if (outcome.is === 'done') metrics?.recordDelete(volume, (clock.monotonicMs() - startedMs) / 1_000)
  return outcome
}

/** Sets the annotation if the volume is unchanged since it was read. Returns false otherwise. */
async function markDeletionRequested(
  { metadata: { name, uid, resourceVersion } }: Volume,
  { client, volumes, clock }: ProvisioningContext,
): Promise<boolean> {
  const annotations = { [DELETION_REQUESTED_ANNOTATION]: new Date(clock.nowMs()).toISOString() }
  const body = { metadata: { uid, resourceVersion, annotations } }
  try {
    volumes.applyWriteResult(await client.patch(persistentVolumeKind, { name }, { type: 'merge', body }))
    return true
  } catch (error) {
    if (isMissingOrReplaced(error)) return false
    throw error
  }
}

/** Removes the finalizer from a deleted PV whose storage belongs to another provisioner. */
async function releaseForeign(volume: Volume, message: string, context: ProvisioningContext): Promise<Outcome> {
  const { volumeFinalizer } = context.settings
  const { deletionTimestamp, finalizers } = volume.metadata
  if (!deletionTimestamp || !finalizers?.includes(volumeFinalizer)) return stuck(message)
  return patchFinalizers(volume, removeFinalizerPatch(volume, volumeFinalizer), context)
}

async function callProvisioner(
  volume: Volume,
  { provisioner, events, metrics, log }: ProvisioningContext,
  signal: AbortSignal,
): Promise<DeleteResult> {
  let overdueReports = 0
  const onOverdue = (message: string) => {
    log.warn(
      { volume: volume.metadata.name, message },
      'the deletion of a volume exceeds its timeout; waiting for the call to return',
    )
    if (overdueReports++ === 0) metrics?.recordDeleteFailure(volume)
    events.record(persistentVolumeKind, volume, deleteFailedEvent(message))
  }
  try {
    return await provisioner.delete(volume, signal, onOverdue)
  } catch (error) {
    return { is: 'failed', message: error instanceof Error ? error.message : String(error) }
  }
}

async function deleteVolumeObject(volume: Volume, context: ProvisioningContext): Promise<Outcome> {
  const { name, uid, finalizers } = volume.metadata
  const finalizer = context.settings.volumeFinalizer
  const deleteWrite: CommitWrite = { do: 'delete', kind: persistentVolumeKind, ref: { name }, uid }
  const removeFinalizerWrite: CommitWrite = {
    do: 'patch',
    kind: persistentVolumeKind,
    ref: { name },
    patch: { type: 'strategic', body: { metadata: removeFinalizerPatch(volume, finalizer) } },
  }
  const result = await context.trySave(
    finalizers?.includes(finalizer) ? [deleteWrite, removeFinalizerWrite] : [deleteWrite],
  )
  if (result.is === 'saved' || isMissingOrReplaced(result.error)) return done
  throw result.error
}

/** Returns a patch without resourceVersion, because other controllers remove their finalizers concurrently. */
const removeFinalizerPatch = ({ metadata: { uid } }: Volume, finalizer: string) => ({
  uid,
  '$deleteFromPrimitiveList/finalizers': [finalizer],
})

async function patchFinalizers(
  volume: Volume,
  metadata: object,
  { client, volumes }: ProvisioningContext,
): Promise<Outcome> {
  const { name } = volume.metadata
  try {
    const patched = await client.patch(persistentVolumeKind, { name }, { type: 'strategic', body: { metadata } })
    if (patched) volumes.applyWriteResult(patched)
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the volume changed during the reconcile')
    throw error
  }
}

async function findClaim({ spec }: Volume, context: ProvisioningContext): Promise<Claim | undefined> {
  if (!spec?.claimRef) return undefined
  const { namespace, name = '' } = spec.claimRef
  const claim = await findLive(persistentVolumeClaimKind, { namespace, name }, context)
  if (claim) context.claims.applyWriteResult(claim)
  return claim
}

async function findLive<T extends KubeObject>(
  kind: Kind<T>,
  ref: ObjectRef,
  { client }: ProvisioningContext,
): Promise<Readonly<Stored<T>> | undefined> {
  try {
    return await client.get(kind, ref)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}
