// Creates the PV of a provisioned volume and removes the finalizer of the intent from its claim in the same commit, which may
// also bind them. A PV of that name may exist if the reply to an earlier attempt was lost or another provisioner was faster.

import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { ApiError, isAlreadyExists, isNotFound } from '../../api/status-error.ts'
import type { CommitWrite } from '../../client/index.ts'
import type { SavedObjects } from '../../runtime/index.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import { planBindingOfNewVolume } from '../binding/index.ts'
import { isSameStorage } from './check-volume.ts'
import type { ProvisioningContext } from './context.ts'
import { hasFinalizer, removeIntentWrite } from './intent.ts'

export type SaveResult =
  | { readonly is: 'saved'; readonly resourceVersion: string }
  /** Another volume has the name, so this volume must be deleted. */
  | { readonly is: 'superseded'; readonly message: string }
  /** The existing PV and its storage belong to another claim, so no volume exists for this claim. */
  | { readonly is: 'foreign'; readonly message: string }
  /** The request failed without a rejection, so the PV may exist. */
  | { readonly is: 'unknown'; readonly message: string }
  | { readonly is: 'rejected'; readonly message: string }

export async function saveVolume(
  volume: PersistentVolume,
  claim: Claim,
  context: ProvisioningContext,
): Promise<SaveResult> {
  const createWrite = { do: 'create', kind: persistentVolumeKind, object: volume } as const
  const binding = await planBindingWrites(volume, claim, context)
  if (binding) {
    const bindResult = await context.trySave([createWrite, ...binding])
    if (bindResult.is === 'saved') return savedResult(bindResult.objects)
    // If a write to the claim failed, because it changed or the write is forbidden, the binder binds the claim.
    if (!bindResult.writeIndex) return classifyFailure(bindResult.error, volume, context)
  }
  const intentWrites = hasFinalizer(claim, context.intentFinalizer)
    ? [removeIntentWrite(claim, context.intentFinalizer)]
    : []
  let result = await context.trySave([createWrite, ...intentWrites])
  // The write to the claim failed. Create the PV alone; the claim is reconciled again anyway.
  if (result.is === 'failed' && result.writeIndex === 1) result = await context.trySave([createWrite])
  if (result.is === 'failed') return classifyFailure(result.error, volume, context)
  return savedResult(result.objects)
}

/** Returns the writes that bind the volume and the claim, if bindsOnSave is set and the server has atomic commits. */
async function planBindingWrites(
  volume: PersistentVolume,
  claim: Claim,
  { settings, client, intentFinalizer }: ProvisioningContext,
): Promise<CommitWrite[] | undefined> {
  if (!settings.bindsOnSave || !(await client.commitsAtomically())) return undefined
  const isAttributesClassEnabled = settings.gates.enabled('VolumeAttributesClass')
  return planBindingOfNewVolume(volume, claim, { finalizerToRemove: intentFinalizer, isAttributesClassEnabled })
}

/** Returns the resourceVersion of the volume, which is always the first write. */
const savedResult = ([volume]: SavedObjects): SaveResult => ({
  is: 'saved',
  resourceVersion: volume?.metadata.resourceVersion ?? '0',
})

async function classifyFailure(
  error: unknown,
  volume: PersistentVolume,
  context: ProvisioningContext,
): Promise<SaveResult> {
  if (!(error instanceof ApiError)) throw error
  if (isAlreadyExists(error)) {
    return (
      (await findExistingVolume(volume, context)) ?? {
        is: 'unknown',
        message: 'a volume of that name existed and was deleted meanwhile',
      }
    )
  }
  return { is: isRejection(error) ? 'rejected' : 'unknown', message: error.message }
}

/** Compares the existing PV of that name with the volume. Returns undefined if no PV exists. */
export async function findExistingVolume(
  volume: PersistentVolume,
  { client }: ProvisioningContext,
): Promise<SaveResult | undefined> {
  const { name = '' } = volume.metadata
  let existing: Volume
  try {
    existing = await client.get(persistentVolumeKind, { name })
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return isNotFound(error) ? undefined : { is: 'unknown', message: error.message }
  }
  const { claimRef } = existing.spec ?? {}
  const isOfSameClaim = claimRef?.uid !== undefined && claimRef.uid === volume.spec?.claimRef?.uid
  if (isSameStorage(volume, existing)) {
    if (isOfSameClaim) return { is: 'saved', resourceVersion: existing.metadata.resourceVersion }
    const message = `volume "${name}" and its storage belong to the claim "${claimRef?.namespace}/${claimRef?.name}"`
    return { is: 'foreign', message }
  }
  return {
    is: 'superseded',
    message: `another volume "${name}" was created first; the one provisioned here is deleted`,
  }
}

/** Whether the server rejected the request. After any other error, the PV may exist or a retry may succeed. */
const isRejection = ({ code }: ApiError): boolean => code >= 400 && code < 500 && !TRANSIENT_CODES.has(code)
/** Unauthorized (expired credentials), timeout, conflict, too many requests. */
const TRANSIENT_CODES = new Set([401, 408, 409, 429])
