// Saves a volume that was made, and lets go of its claim in the same commit, which may bind the two as well. The reply to an earlier try may have been
// lost, and another provisioner may have been faster: a volume of that name that is there already is looked at.

import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { ApiError, isNotFound } from '../../api/status-error.ts'
import type { CommitWrite } from '../../client/index.ts'
import type { SavedObjects } from '../../runtime/index.ts'
import type { Claim } from '../../volumes/matching.ts'
import { bindingOfNew } from '../binding/index.ts'
import { isSameStorage } from './check-volume.ts'
import type { ProvisioningContext } from './context.ts'
import { dropIntentWrite, holdsIntent } from './intent.ts'

export type Saved =
  | { readonly is: 'saved'; readonly resourceVersion: string }
  /** Another volume was saved under the name: what we made is one too many. */
  | { readonly is: 'outrun'; readonly because: string }
  /** The name, and what is behind it, belong to another claim: nothing of ours exists. */
  | { readonly is: 'notOurs'; readonly because: string }
  /** Nothing was refused; it may even be saved. */
  | { readonly is: 'unanswered'; readonly because: string }
  | { readonly is: 'refused'; readonly because: string }

export async function saveVolume(volume: PersistentVolume, claim: Claim, context: ProvisioningContext): Promise<Saved> {
  const create = { do: 'create', kind: persistentVolumeKind, object: volume } as const
  const binding = await bindingIn(volume, claim, context)
  if (binding) {
    const bound = await context.trySave([create, ...binding])
    if (bound.is === 'saved') return savedAt(bound.objects)
    // Is it about the claim, which has changed or may not be written by us, the binder will see to it.
    if (!bound.write) return explain(bound.error, volume, context)
  }
  const letGo = holdsIntent(claim, context.intent) ? [dropIntentWrite(claim, context.intent)] : []
  let answer = await context.trySave([create, ...letGo])
  // The claim is gone, or does not let itself be changed. The volume comes first; the claim is looked at again anyway.
  if (answer.is === 'failed' && answer.write === 1) answer = await context.trySave([create])
  if (answer.is === 'failed') return explain(answer.error, volume, context)
  return savedAt(answer.objects)
}

/** The writes that bind them at once, if that is wanted and can be one transaction with the volume's create. */
async function bindingIn(
  volume: PersistentVolume,
  claim: Claim,
  { settings, client, intent }: ProvisioningContext,
): Promise<CommitWrite[] | undefined> {
  if (!settings.bindsAtOnce || !(await client.commitsAtomically())) return undefined
  const bindsAttributesClasses = settings.gates.enabled('VolumeAttributesClass')
  return bindingOfNew(volume, claim, { removesFinalizer: intent, bindsAttributesClasses })
}

/** The volume's create is always the first write. */
const savedAt = ([volume]: SavedObjects): Saved => ({
  is: 'saved',
  resourceVersion: volume?.metadata.resourceVersion ?? '0',
})

async function explain(error: unknown, volume: PersistentVolume, context: ProvisioningContext): Promise<Saved> {
  if (!(error instanceof ApiError)) throw error
  if (error.code === 409 && error.reason === 'AlreadyExists') {
    return (await lookAt(volume, context)) ?? { is: 'unanswered', because: 'a volume of that name was there just now' }
  }
  return { is: isRefusal(error) ? 'refused' : 'unanswered', because: error.message }
}

/** What is saved under the volume's name; nothing when nothing is. */
export async function lookAt(volume: PersistentVolume, { client }: ProvisioningContext): Promise<Saved | undefined> {
  const { name = '' } = volume.metadata
  let found: Readonly<PersistentVolume>
  try {
    found = await client.get(persistentVolumeKind, { name })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return isNotFound(error) ? undefined : { is: 'unanswered', because: error.message }
  }
  const { claimRef } = found.spec ?? {}
  const isOfSameClaim = claimRef?.uid !== undefined && claimRef.uid === volume.spec?.claimRef?.uid
  if (isSameStorage(volume, found)) {
    if (isOfSameClaim) return { is: 'saved', resourceVersion: found.metadata.resourceVersion ?? '0' }
    const because = `volume "${name}" and what is behind it belong to the claim "${claimRef?.namespace}/${claimRef?.name}"`
    return { is: 'notOurs', because }
  }
  return { is: 'outrun', because: `another volume "${name}" was saved first; what was made here is deleted` }
}

/** The server understood and said no. Anything else may still have worked, or work next time. */
const isRefusal = ({ code }: ApiError): boolean => code >= 400 && code < 500 && !MAY_PASS.has(code)
/** Credentials that ran out, a timeout, a conflict, too many requests. */
const MAY_PASS = new Set([401, 408, 409, 429])
