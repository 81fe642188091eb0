// Writes of bulk commands to one claim: the start of a change, its dry run, and the record in an annotation. Each write has
// the uid and resourceVersion as preconditions, so that it does not overwrite concurrent changes or a recreated claim.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { ApiError, isConflict, isNotFound } from '../../api/status-error.ts'
import type { Client, ObjectRef, WriteOptions } from '../../client/index.ts'
import { type FinalStatus, isTransient, type StartResult } from './run-claims.ts'

export type Claim = Readonly<Stored<PersistentVolumeClaim>>

/** Maximum number of retries after conflicts on a claim. */
const CONFLICTS_MAX = 10

/**
 * Reads the claim and performs its next step: returns a final status, returns the resourceVersion if the change was
 * already started, or writes. After a conflict, it reads the claim again and repeats the step.
 */
export async function startChange(
  client: Client,
  claim: Claim,
  signal: AbortSignal,
  nextStep: (currentClaim: Claim) => FinalStatus | 'follow' | (() => Promise<StartResult>),
): Promise<StartResult> {
  for (let conflicts = 0; ; conflicts++) {
    const currentClaim = await client.get(persistentVolumeClaimKind, refOf(claim), { signal })
    if (currentClaim.metadata.uid !== claim.metadata.uid)
      return { is: 'failed', message: 'the claim was deleted and recreated' }
    const step = nextStep(currentClaim)
    if (step === 'follow') return { version: currentClaim.metadata.resourceVersion }
    if (typeof step !== 'function') return step
    try {
      return await step()
    } catch (error) {
      if (!isConflict(error) || conflicts >= CONFLICTS_MAX) throw error
    }
  }
}

/**
 * Returns a failure if the server rejects the dry run, the final status if the claim needs no write, otherwise undefined.
 * Throws transient errors. A conflict is not a rejection, because the start reads the claim again.
 */
export async function findRejection(dryRun: () => Promise<StartResult>): Promise<FinalStatus | undefined> {
  try {
    const result = await dryRun()
    return 'is' in result ? result : undefined
  } catch (error) {
    if (!(error instanceof ApiError) || isTransient(error)) throw error
    return isConflict(error) ? undefined : { is: 'failed', message: error.message }
  }
}

interface ClaimPatch {
  /** A value of null removes the annotation. */
  readonly annotations?: Readonly<Record<string, string | null>>
  readonly spec?: object
}

export function patchClaim(
  client: Client,
  claim: Claim,
  { annotations = {}, spec }: ClaimPatch,
  options: WriteOptions,
): Promise<Claim> {
  const { uid, resourceVersion } = claim.metadata
  const body = { metadata: { uid, resourceVersion, annotations }, ...(spec ? { spec } : {}) }
  return client.patch(persistentVolumeClaimKind, refOf(claim), { type: 'merge', body }, options)
}

/** Changes a command's record, unless the claim is deleted or `change` returns undefined. */
export async function changeRecord(
  client: Client,
  ref: ObjectRef,
  annotation: string,
  change: (claim: Claim) => string | null | undefined,
  options: WriteOptions,
): Promise<void> {
  for (let conflicts = 0; ; conflicts++) {
    try {
      const claim = await client.get(persistentVolumeClaimKind, ref)
      const record = change(claim)
      if (record !== undefined) await patchClaim(client, claim, { annotations: { [annotation]: record } }, options)
      return
    } catch (error) {
      if (isNotFound(error)) return
      if (!isConflict(error) || conflicts >= CONFLICTS_MAX) throw error
    }
  }
}

export const refOf = ({ metadata: { namespace, name } }: Claim): ObjectRef => ({ namespace, name })
