// Saves a modification's writes: the status patch of the claim (status-patches.ts) and the patch of the volume.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { CommitWrite } from '../../client/index.ts'
import type { Saver } from '../../runtime/index.ts'
import type { Subject } from '../volume-changes/change.ts'
import type { StatusPatch } from './status-patches.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>
type Volume = Readonly<Stored<PersistentVolume>>

export type WriteResult =
  | { readonly is: 'written'; readonly subject: Subject }
  /** The claim has changed since it was read. */
  | { readonly is: 'changed' }
  /** The claim or the volume was deleted. */
  | { readonly is: 'deleted' }

/** Throws NotLeaderError, and ApiError for any failure other than a conflict or a deleted object. */
export async function writeStatus(subject: Subject, patch: StatusPatch, saver: Saver): Promise<WriteResult> {
  const result = await saver.trySave([statusWrite(subject.claim, patch)])
  if (result.is === 'failed') return resultOfFailure(result.error)
  const claim = result.objects[0] as Claim | undefined
  return claim ? { is: 'written', subject: { ...subject, claim } } : { is: 'deleted' }
}

/** Writes the volume first, because a claim's status must not contain attributes that its volume does not have. */
export async function writeVolumeAndStatus(
  subject: Subject,
  volumePatch: object | undefined,
  patch: StatusPatch,
  saver: Saver,
): Promise<WriteResult> {
  if (!volumePatch) return writeStatus(subject, patch, saver)
  const volumeUpdate = volumeWrite(subject.volume, volumePatch)
  const result = await saver.trySave([volumeUpdate, statusWrite(subject.claim, patch)])
  if (result.is === 'failed') {
    const failureResult = resultOfFailure(result.error)
    // Save the volume even if the write of the claim failed, because the driver has changed the volume.
    if (result.writeIndex === 1) await saver.trySave([volumeUpdate])
    return failureResult
  }
  const [volume, claim] = result.objects as [Volume | undefined, Claim | undefined]
  return volume && claim ? { is: 'written', subject: { claim, volume } } : { is: 'deleted' }
}

function resultOfFailure(error: unknown): WriteResult {
  if (isConflict(error)) return { is: 'changed' }
  if (isNotFound(error)) return { is: 'deleted' }
  throw error
}

const statusWrite = ({ metadata }: Claim, body: StatusPatch): CommitWrite => ({
  do: 'patch',
  kind: persistentVolumeClaimKind,
  ref: { namespace: metadata.namespace, name: metadata.name },
  patch: { type: 'strategic', body },
  subresource: 'status',
})

const volumeWrite = ({ metadata }: Volume, body: object): CommitWrite => ({
  do: 'patch',
  kind: persistentVolumeKind,
  ref: { name: metadata.name },
  patch: { type: 'merge', body },
})
