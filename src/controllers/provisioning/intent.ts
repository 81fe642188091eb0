// Intent before effect: before the storage is asked for a claim's volume for the first time, the claim gets this
// finalizer. While it is there, something may exist under the volume's name, and the claim cannot go: whichever process
// finds it finishes the work. It leaves in the same commit that saves the volume, or when nothing is known to exist.

import { createHash } from 'node:crypto'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { ApiError, conflict, isNotFound, notFound } from '../../api/status-error.ts'
import type { CommitWrite, ObjectRef, Patch } from '../../client/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import { SELECTED_NODE } from '../../volumes/names.ts'
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

export const holdsIntent = ({ metadata }: Claim, intent: string): boolean =>
  metadata.finalizers?.includes(intent) ?? false

export const isGoing = ({ metadata }: Claim): boolean => metadata.deletionTimestamp !== undefined

/** Only on the very claim that was judged: it may be going, bound or another's by now. Throws ApiError. */
export async function putIntent(claim: Claim, { client, claims, intent }: ProvisioningContext): Promise<Claim> {
  const { uid, resourceVersion } = claim.metadata
  const body = { metadata: { uid, resourceVersion, finalizers: [intent] } }
  const held = await client.patch(persistentVolumeClaimKind, refOf(claim), { type: 'strategic', body })
  claims.learn(held)
  return held
}

/**
 * For an intent that only the cache shows: one that is no longer there was let go of by whoever finished the work, and
 * what is asked for now would be nobody's. Throws ApiError, 404 when the claim is gone and 409 when the intent is.
 */
export async function confirmIntent(claim: Claim, { client, claims, intent }: ProvisioningContext): Promise<void> {
  const live = await client.get(persistentVolumeClaimKind, refOf(claim))
  const { name = '', uid } = claim.metadata
  if (live.metadata.uid !== uid) throw notFound(persistentVolumeClaimKind, name)
  claims.learn(live)
  if (!holdsIntent(live, intent)) throw conflict(persistentVolumeClaimKind, name, 'its intent has been let go of')
}

/** Names no version: whatever else was changed in the claim meanwhile is no reason to hold it. */
export const dropIntentWrite = (claim: Claim, intent: string): CommitWrite => ({
  do: 'patch',
  kind: persistentVolumeClaimKind,
  ref: refOf(claim),
  patch: withoutIntent(claim, intent),
})

export async function dropIntent(claim: Claim, { client, claims, intent }: ProvisioningContext): Promise<void> {
  if (!holdsIntent(claim, intent)) return
  try {
    const left = await client.patch(persistentVolumeClaimKind, refOf(claim), withoutIntent(claim, intent))
    if (left) claims.learn(left) // nothing is left of a claim that waited for this
  } catch (error) {
    if (!isGone(error)) throw error
  }
}

/**
 * Gives the choice of node back to the scheduler, which chooses anew when it finds none. Where nothing exists the
 * intent goes with it. False when the claim changed at the same moment.
 */
export async function giveNodeBack(
  claim: Claim,
  { node, mayExist }: { readonly node: string; readonly mayExist: boolean },
  { client, claims, intent }: ProvisioningContext,
): Promise<boolean> {
  try {
    const live = await client.get(persistentVolumeClaimKind, refOf(claim))
    if (live.metadata.uid !== claim.metadata.uid || live.metadata.annotations?.[SELECTED_NODE] !== node) return true
    const { uid, resourceVersion } = live.metadata
    const metadata = {
      uid,
      resourceVersion,
      annotations: { [SELECTED_NODE]: null },
      ...(mayExist ? {} : { '$deleteFromPrimitiveList/finalizers': [intent] }),
    }
    const left = await client.patch(persistentVolumeClaimKind, refOf(claim), { type: 'strategic', body: { metadata } })
    if (left) claims.learn(left)
    return true
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return true
    if (error instanceof ApiError && error.code === 409) return false
    throw error
  }
}

/** The object is no longer there, or another one has its name. */
export const isGone = (error: unknown): boolean =>
  isNotFound(error) || (error instanceof ApiError && error.code === 409 && error.reason === 'Conflict')

export const refOf = ({ metadata: { namespace, name = '' } }: Claim): ObjectRef => ({
  namespace,
  name,
})

const withoutIntent = ({ metadata: { uid } }: Claim, intent: string): Patch => ({
  type: 'strategic',
  body: { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [intent] } },
})
