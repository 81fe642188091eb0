// The intent is a finalizer that a claim gets before the first call to the storage. While it is set, a volume may exist in
// the storage, and the claim is not removed, so that the next process can finish the work after a crash. It is removed by
// the commit that creates the PV, or when the storage confirms that no volume exists, together with the selected node if
// another node is needed.

import { createHash } from 'node:crypto'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { conflict, isConflict, isNotFound, notFound } from '../../api/status-error.ts'
import type { CommitWrite, ObjectRef, Patch } from '../../client/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import { LAST_FAILURE, LAST_FAILURE_CHARACTERS_MAX, SELECTED_NODE } from '../../volumes/names.ts'
import type { ProvisioningContext } from './context.ts'

export const INTENT_PREFIX = 'provisioning.stowage.dev/'
const NAME_CHARACTERS_MAX = 63
const HASH_CHARACTERS = 8

export function intentOf(provisionerName: string, instance?: string): string {
  const name = (instance === undefined ? provisionerName : `${provisionerName}.${instance}`).replaceAll('/', '-')
  if (name.length <= NAME_CHARACTERS_MAX) return INTENT_PREFIX + name
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_CHARACTERS)
  return `${INTENT_PREFIX}${name.slice(0, NAME_CHARACTERS_MAX - HASH_CHARACTERS - 1)}.${hash}`
}

export const hasIntent = ({ metadata }: Claim, intent: string): boolean =>
  metadata.finalizers?.includes(intent) ?? false

export const isBeingDeleted = ({ metadata }: Claim): boolean => metadata.deletionTimestamp !== undefined

/** Adds the intent if the claim is unchanged since it was read. Throws ApiError. */
export async function addIntent(claim: Claim, { client, claims, intent }: ProvisioningContext): Promise<Claim> {
  const { uid, resourceVersion } = claim.metadata
  const body = { metadata: { uid, resourceVersion, finalizers: [intent] } }
  const patched = await client.patch(persistentVolumeClaimKind, refOf(claim), { type: 'strategic', body })
  claims.applyWriteResult(patched)
  return patched
}

/**
 * Checks that the claim still has the intent that the cache contains. If it was removed, another process has finished the
 * work, and a new volume would belong to no claim. Throws ApiError: NotFound if the claim was deleted, Conflict if the
 * intent was removed.
 */
export async function confirmIntent(claim: Claim, { client, claims, intent }: ProvisioningContext): Promise<void> {
  const current = await client.get(persistentVolumeClaimKind, refOf(claim))
  const { name, uid } = claim.metadata
  if (current.metadata.uid !== uid) throw notFound(persistentVolumeClaimKind, name)
  claims.applyWriteResult(current)
  if (!hasIntent(current, intent))
    throw conflict(persistentVolumeClaimKind, name, 'its provisioning finalizer has been removed')
}

/** Returns a write without resourceVersion, because other changes of the claim do not matter. */
export const removeIntentWrite = (claim: Claim, intent: string): CommitWrite => ({
  do: 'patch',
  kind: persistentVolumeClaimKind,
  ref: refOf(claim),
  patch: removeIntentPatch(claim, intent),
})

export async function removeIntent(claim: Claim, { client, claims, intent }: ProvisioningContext): Promise<void> {
  if (!hasIntent(claim, intent)) return
  try {
    const patched = await client.patch(persistentVolumeClaimKind, refOf(claim), removeIntentPatch(claim, intent))
    if (patched) claims.applyWriteResult(patched) // undefined if this was the last finalizer of a deleted claim
  } catch (error) {
    if (!isMissingOrReplaced(error)) throw error
  }
}

/**
 * Removes the selected node, so that the scheduler selects another one, and the intent if no volume exists. Records the
 * reason for the message of the pod. Returns false if the claim changed since it was read.
 */
export async function clearSelectedNode(
  claim: Claim,
  { node, mayExist, message }: { readonly node: string; readonly mayExist: boolean; readonly message: string },
  { client, claims, intent }: ProvisioningContext,
): Promise<boolean> {
  try {
    const current = await client.get(persistentVolumeClaimKind, refOf(claim))
    if (current.metadata.uid !== claim.metadata.uid || current.metadata.annotations?.[SELECTED_NODE] !== node)
      return true
    const { uid, resourceVersion } = current.metadata
    const metadata = {
      uid,
      resourceVersion,
      annotations: { [SELECTED_NODE]: null, [LAST_FAILURE]: failureText(node, message) },
      ...(mayExist ? {} : { '$deleteFromPrimitiveList/finalizers': [intent] }),
    }
    const patched = await client.patch(persistentVolumeClaimKind, refOf(claim), {
      type: 'strategic',
      body: { metadata },
    })
    if (patched) claims.applyWriteResult(patched)
    return true
  } catch (error) {
    if (isNotFound(error)) return true
    if (isConflict(error)) return false
    throw error
  }
}

function failureText(node: string, message: string): string {
  const text = `node ${JSON.stringify(node)}: ${message}`
  return text.length > LAST_FAILURE_CHARACTERS_MAX ? `${text.slice(0, LAST_FAILURE_CHARACTERS_MAX)}…` : text
}

/** Whether the object was deleted or the precondition on its uid or resourceVersion failed. */
export const isMissingOrReplaced = (error: unknown): boolean => isNotFound(error) || isConflict(error)

export const refOf = ({ metadata: { namespace, name } }: Claim): ObjectRef => ({
  namespace,
  name,
})

const removeIntentPatch = ({ metadata: { uid } }: Claim, intent: string): Patch => ({
  type: 'strategic',
  body: { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [intent] } },
})
