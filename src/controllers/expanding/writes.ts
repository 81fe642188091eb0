// Builds and saves an expansion's writes: status patches of the claim, and size and annotations of the volume.
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { CommitWrite } from '../../client/index.ts'
import type { Saver } from '../../runtime/index.ts'
import type { StatusPatch } from '../../volumes/resize-status.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>
type Volume = Readonly<Stored<PersistentVolume>>

/** Saves the writes and returns the claim, whose write must be the last. Throws the error of the commit, or NotLeaderError. */
export async function saveClaim(writes: readonly CommitWrite[], saver: Saver): Promise<Claim | undefined> {
  return (await saver.save(writes)).at(-1) as Claim | undefined
}

/** Builds a write of the claim's status with the claim's resourceVersion as a precondition. */
export const claimWrite = (claim: Claim, patch: StatusPatch): CommitWrite =>
  statusWrite(claim, patch, { resourceVersion: claim.metadata.resourceVersion })

/** Builds a write of a failure, without this precondition: a failure is saved even if the claim has changed. */
export const unconditionalClaimWrite = (claim: Claim, patch: StatusPatch): CommitWrite => statusWrite(claim, patch, {})

function statusWrite(claim: Claim, { metadata, status }: StatusPatch, condition: object): CommitWrite {
  const { namespace, name, uid } = claim.metadata
  const body = { metadata: { uid, ...condition, ...metadata }, status }
  return {
    do: 'patch',
    kind: persistentVolumeClaimKind,
    ref: { namespace, name },
    patch: { type: 'strategic', body },
    subresource: 'status',
  }
}

export interface VolumeUpdate {
  readonly size?: string
  /** A value of null removes the annotation. */
  readonly annotations?: Readonly<Record<string, string | null>>
  /** Adds the volume's resourceVersion as a precondition. */
  readonly isConditional?: true
}

export function volumeWrite(volume: Volume, { size, annotations, isConditional }: VolumeUpdate): CommitWrite {
  const { name, uid, resourceVersion } = volume.metadata
  const body = {
    metadata: { uid, ...(isConditional ? { resourceVersion } : {}), ...(annotations ? { annotations } : {}) },
    ...(size === undefined ? {} : { spec: { capacity: { storage: size } } }),
  }
  return { do: 'patch', kind: persistentVolumeKind, ref: { name }, patch: { type: 'merge', body } }
}
