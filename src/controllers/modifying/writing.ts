// The writes of a step: only the leader's, and what they left behind is known here before the watch tells it.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { CommitWrite } from '../../client/index.ts'
import { commitAsLeader } from '../provisioning/leader-commit.ts'
import type { Subject } from '../volume-changes/change.ts'
import type { ModifyingContext } from './context.ts'
import type { StatusPatch } from './status-patches.ts'

type Claim = Readonly<PersistentVolumeClaim>
type Volume = Readonly<PersistentVolume>

export type Written =
  | { readonly is: 'written'; readonly subject: Subject }
  /** Someone was faster: read again. */
  | { readonly is: 'changed' }
  /** The claim is gone. */
  | { readonly is: 'gone' }

/** Throws where the server could not be asked or refused for another reason. */
export async function writeStatus(subject: Subject, patch: StatusPatch, context: ModifyingContext): Promise<Written> {
  const committed = await commitAsLeader(context, [statusWrite(subject.claim, patch)])
  if (committed.is === 'failed') return ended(committed.error)
  const claim = committed.left[0] as Stored<Claim> | undefined
  if (!claim) return { is: 'gone' }
  context.claims.learn(claim)
  return { is: 'written', subject: { ...subject, claim } }
}

/** The volume first: a claim must not say what its volume does not. */
export async function writeBoth(
  subject: Subject,
  volumePatch: object | undefined,
  patch: StatusPatch,
  context: ModifyingContext,
): Promise<Written> {
  if (!volumePatch) return writeStatus(subject, patch, context)
  const first = volumeWrite(subject.volume, volumePatch)
  const committed = await commitAsLeader(context, [first, statusWrite(subject.claim, patch)])
  if (committed.is === 'failed') {
    const how = ended(committed.error)
    // The volume outlives its claim, and what it has is true all the same.
    if (committed.write === 1) await commitAsLeader(context, [first])
    return how
  }
  const [volume, claim] = committed.left as [Stored<Volume> | undefined, Stored<Claim> | undefined]
  if (volume) context.volumes.learn(volume)
  if (claim) context.claims.learn(claim)
  return volume && claim ? { is: 'written', subject: { claim, volume } } : { is: 'gone' }
}

function ended(error: unknown): Written {
  if (error instanceof ApiError && error.code === 409) return { is: 'changed' }
  if (error instanceof ApiError && error.code === 404) return { is: 'gone' }
  throw error
}

const statusWrite = ({ metadata }: Claim, body: StatusPatch): CommitWrite => ({
  do: 'patch',
  kind: persistentVolumeClaimKind,
  ref: { namespace: metadata.namespace ?? '', name: metadata.name ?? '' },
  patch: { type: 'strategic', body },
  subresource: 'status',
})

const volumeWrite = ({ metadata }: Volume, body: object): CommitWrite => ({
  do: 'patch',
  kind: persistentVolumeKind,
  ref: { name: metadata.name ?? '' },
  patch: { type: 'merge', body },
})
