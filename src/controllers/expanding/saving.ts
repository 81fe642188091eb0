// The writes of a growth: what the claim says, and what the volume says, through the leader's fence and back into the
// caches, so that the next look is not at the past.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { CommitWrite } from '../../client/index.ts'
import type { StatusPatch } from '../../volumes/resize-status.ts'
import { commitAsLeader } from '../provisioning/leader-commit.ts'
import type { ExpandingContext } from './context.ts'

type Claim = Readonly<PersistentVolumeClaim>
type Volume = Readonly<PersistentVolume>

/** Throws an ApiError. */
export async function save(
  writes: readonly CommitWrite[],
  context: ExpandingContext,
): Promise<Stored<Claim> | undefined> {
  const committed = await commitAsLeader(context, writes)
  if (committed.is === 'failed') throw committed.error
  let claim: Stored<Claim> | undefined
  for (const [index, left] of committed.left.entries()) {
    if (!left) continue
    if (writes[index]?.kind === persistentVolumeKind) context.volumes.learn(left as Stored<Volume>)
    else {
      claim = left as Stored<Claim>
      context.claims.learn(claim)
    }
  }
  return claim
}

/** Only if the claim is still as it was read. */
export const claimWrite = (claim: Claim, patch: StatusPatch): CommitWrite =>
  statusWrite(claim, patch, { resourceVersion: claim.metadata.resourceVersion })

/** Whatever became of the claim meanwhile. */
export const claimNote = (claim: Claim, patch: StatusPatch): CommitWrite => statusWrite(claim, patch, {})

function statusWrite(claim: Claim, { metadata, status }: StatusPatch, condition: object): CommitWrite {
  const { namespace, name = '', uid } = claim.metadata
  const body = { metadata: { uid, ...condition, ...metadata }, status }
  const ref = { ...(namespace ? { namespace } : {}), name }
  return {
    do: 'patch',
    kind: persistentVolumeClaimKind,
    ref,
    patch: { type: 'strategic', body },
    subresource: 'status',
  }
}

export interface VolumeChange {
  readonly size?: string
  /** Null: it is removed. */
  readonly annotations?: Readonly<Record<string, string | null>>
  /** Only if the volume is still as it was read. */
  readonly isConditional?: true
}

export function volumeWrite(volume: Volume, { size, annotations, isConditional }: VolumeChange): CommitWrite {
  const { name = '', uid, resourceVersion } = volume.metadata
  const body = {
    metadata: { uid, ...(isConditional ? { resourceVersion } : {}), ...(annotations ? { annotations } : {}) },
    ...(size === undefined ? {} : { spec: { capacity: { storage: size } } }),
  }
  return { do: 'patch', kind: persistentVolumeKind, ref: { name }, patch: { type: 'strategic', body } }
}
