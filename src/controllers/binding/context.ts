// The dependencies of both reconcilers, created once by binding-controllers.ts, and the reads that both need.

import type { FeatureGates } from '../../api/feature-gates.ts'
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock } from '../../base/clock.ts'
import { find } from '../../client/find.ts'
import type { Client, ObjectRef } from '../../client/index.ts'
import { keyOfObject } from '../../client/index.ts'
import type { Cache, EventRecorder, Saver } from '../../runtime/index.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import type { ClaimWaker } from './claim-waker.ts'
import type { BindingMetrics } from './metrics.ts'
import type { OperationTimes } from './operation-times.ts'
import type { InProcessProvisioner } from './plan-reclaim.ts'
import type { RunningProvisioners } from './running-provisioners.ts'
import type { VolumeIndex } from './volume-index.ts'

export interface BindingContext {
  readonly clock: Pick<Clock, 'nowMs'>
  readonly client: Client
  readonly save: Saver['save']
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  readonly classes: Cache<StorageClass>
  readonly pods: Cache<Pod>
  readonly index: VolumeIndex
  readonly claimWaker: ClaimWaker
  readonly events: EventRecorder
  readonly metrics: BindingMetrics | undefined
  readonly provisioningTimes: OperationTimes
  readonly deletionTimes: OperationTimes
  readonly inProcessProvisioners: readonly InProcessProvisioner[]
  readonly runningProvisioners: RunningProvisioners
  readonly gates: FeatureGates
}

export const PODS_BY_CLAIM = 'binding/claim'

/** Reads the claim from the server and updates the cache. Returns undefined if it does not exist. */
export async function readClaim({ client, claims }: BindingContext, ref: ObjectRef): Promise<Claim | undefined> {
  const claim = await find(client, persistentVolumeClaimKind, ref)
  if (claim) claims.applyWriteResult(claim)
  return claim
}

export async function readVolume({ client, volumes }: BindingContext, name: string): Promise<Volume | undefined> {
  const volume = await find(client, persistentVolumeKind, { name })
  if (volume) volumes.applyWriteResult(volume)
  return volume
}

/** Returns the pods that use the claim `namespace/name` and have not terminated, sorted by key. */
export const activePodsOf = ({ pods }: BindingContext, claimKey: string): Readonly<Stored<Pod>>[] =>
  pods
    .byIndex(PODS_BY_CLAIM, claimKey)
    .filter((pod) => !hasTerminated(pod))
    .sort((a, b) => (keyOfObject(a) < keyOfObject(b) ? -1 : 1))
