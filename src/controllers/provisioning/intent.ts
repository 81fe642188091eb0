// An intent records that a provisioner may have started to create a volume for a claim. It is recorded before the first call to
// the storage, so that the next process can finish the work after a crash. It is removed when the claim has a PV or needs none.
//
// The intent is a finalizer, which also keeps a deleted claim; the commit that creates the PV removes it. A binder in the same
// process writes it together with the name of the provisioner, before there is an attempt (isExpectedIntent). An elected process
// on an API server without atomic commits records intents in a journal instead, for many claims at a time (intent-journal.ts). It
// also completes intents that are finalizers. An entry of the journal is also removed when the storage confirms that no volume
// exists.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { conflict, isConflict, isNotFound, notFound } from '../../api/status-error.ts'
import { type CommitWrite, keyOfObject, type ObjectRef, type Patch } from '../../client/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import type { Attempt } from './attempts.ts'
import type { ProvisioningContext } from './context.ts'

/** Whether the intent is recorded as a finalizer. */
export const hasFinalizer = ({ metadata }: Claim, intentFinalizer: string): boolean =>
  metadata.finalizers?.includes(intentFinalizer) ?? false

/** Whether the intent is recorded as a finalizer or in the journal. */
export const hasIntent = (
  claim: Claim,
  { intentFinalizer, journal }: Pick<ProvisioningContext, 'intentFinalizer' | 'journal'>,
): boolean => hasFinalizer(claim, intentFinalizer) || (journal?.has(claim.metadata.uid) ?? false)

/** Whether the binder of this process has recorded the intent, and the storage has not been called since. */
export const isExpectedIntent = (
  claim: Claim,
  { expectedIntents }: Pick<ProvisioningContext, 'expectedIntents'>,
): boolean => expectedIntents.get(keyOfObject(claim)) === claim.metadata.uid

export const isBeingDeleted = ({ metadata }: Claim): boolean => metadata.deletionTimestamp !== undefined

/**
 * Records the intent and returns the claim with its current finalizers. A finalizer is added only if the claim is unchanged
 * since it was read. Throws ApiError or NotLeaderError.
 */
export async function addIntent(
  claim: Claim,
  { writer, claims, intentFinalizer, journal }: ProvisioningContext,
): Promise<Claim> {
  if (await journal?.add(claim)) return claim
  const { uid, resourceVersion } = claim.metadata
  const body = { metadata: { uid, resourceVersion, finalizers: [intentFinalizer] } }
  const patched = await writer.patch(persistentVolumeClaimKind, refOf(claim), { type: 'strategic', body })
  claims.applyWriteResult(patched)
  return patched
}

/**
 * Checks that the intent is still recorded. If it was removed, another process has finished the work, and a new volume would
 * belong to no claim. Before the first call, also checks that the claim is unchanged, as addIntent does. Throws ApiError:
 * NotFound if the claim was deleted, Conflict if it changed or its finalizer was removed; or NotLeaderError if another process
 * has opened the journal.
 */
export async function confirmIntent(claim: Claim, context: ProvisioningContext): Promise<void> {
  const { client, claims, intentFinalizer, journal } = context
  if (journal?.has(claim.metadata.uid)) return journal.confirm()
  const current = await client.get(persistentVolumeClaimKind, refOf(claim))
  const { name, uid } = claim.metadata
  if (current.metadata.uid !== uid) throw notFound(persistentVolumeClaimKind, name)
  claims.applyWriteResult(current)
  if (!hasFinalizer(current, intentFinalizer))
    throw conflict(persistentVolumeClaimKind, name, 'the provisioning finalizer of the claim has been removed')
  if (isExpectedIntent(claim, context) && current.metadata.resourceVersion !== claim.metadata.resourceVersion)
    throw conflict(persistentVolumeClaimKind, name, 'the claim changed after its volume was requested')
}

/** Returns the write that removes the finalizer, without resourceVersion, because other changes to the claim do not matter. */
export const removeIntentWrite = (claim: Claim, intentFinalizer: string): CommitWrite => ({
  do: 'patch',
  kind: persistentVolumeClaimKind,
  ref: refOf(claim),
  patch: removeIntentPatch(claim, intentFinalizer),
})

export async function removeIntent(
  claim: Claim,
  { client, claims, intentFinalizer, journal, expectedIntents }: ProvisioningContext,
): Promise<void> {
  journal?.remove(claim.metadata.uid)
  expectedIntents.delete(keyOfObject(claim))
  if (!hasFinalizer(claim, intentFinalizer)) return
  try {
    const patched = await client.patch(
      persistentVolumeClaimKind,
      refOf(claim),
      removeIntentPatch(claim, intentFinalizer),
    )
    if (patched) claims.applyWriteResult(patched) // undefined if this was a deleted claim's last finalizer
  } catch (error) {
    if (!isMissingOrReplaced(error)) throw error
  }
}

/**
 * Records that no volume exists for an attempt's claim. An entry of the journal is removed, and the next call adds it
 * again; a finalizer remains until the claim has a volume or needs none.
 */
export function markNoVolume(attempt: Attempt, { journal }: ProvisioningContext): void {
  attempt.stage = { is: 'nothing' }
  journal?.remove(attempt.claim.metadata.uid)
}

/** Whether the object was deleted or the precondition on its uid or resourceVersion failed. */
export const isMissingOrReplaced = (error: unknown): boolean => isNotFound(error) || isConflict(error)

export const refOf = ({ metadata: { namespace, name } }: Claim): ObjectRef => ({
  namespace,
  name,
})

const removeIntentPatch = ({ metadata: { uid } }: Claim, intentFinalizer: string): Patch => ({
  type: 'strategic',
  body: { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [intentFinalizer] } },
})
