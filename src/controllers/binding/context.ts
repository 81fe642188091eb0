// What a pass over a claim or a volume has at hand, and how its writes are saved.

import type { FeatureGates } from '../../api/feature-gates.ts'
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { ApiError, isNotFound } from '../../api/status-error.ts'
import type { Client, ObjectRef } from '../../client/index.ts'
import { keyOfObject } from '../../client/index.ts'
import type { Cache, EventRecorder, Saver } from '../../runtime/index.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import type { ClaimWaker } from './claim-waker.ts'
import type { BindingMetrics } from './metrics.ts'
import type { OperationTimes } from './operation-times.ts'
import type { InProcessProvisioner } from './plan-reclaim.ts'
import type { VolumeIndex } from './volume-index.ts'

export interface BindingContext {
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
  readonly provisioning: OperationTimes
  readonly deleting: OperationTimes
  readonly inProcess: readonly InProcessProvisioner[]
  readonly gates: FeatureGates
}

export const PODS_BY_CLAIM = 'binding/claim'

export const readClaim = (context: BindingContext, ref: ObjectRef): Promise<Claim | undefined> =>
  readAndLearn(() => context.client.get(persistentVolumeClaimKind, ref), context.claims)

export const readVolume = (context: BindingContext, name: string): Promise<Volume | undefined> =>
  readAndLearn(() => context.client.get(persistentVolumeKind, { name }), context.volumes)

async function readAndLearn<T extends PersistentVolumeClaim | PersistentVolume>(
  read: () => Promise<Readonly<Stored<T>>>,
  cache: Cache<T>,
): Promise<Readonly<T> | undefined> {
  try {
    const object = await read()
    cache.learn(object)
    return object
  } catch (error) {
    if (isNotFound(error)) return undefined // anything less sure would give up a volume
    throw error
  }
}

/** Active pods that name a claim, as `namespace/name`, in order. */
export const podsOf = ({ pods }: BindingContext, claimKey: string): Readonly<Pod>[] =>
  pods
    .byIndex(PODS_BY_CLAIM, claimKey)
    .filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
    .sort((a, b) => (keyOfObject(a) < keyOfObject(b) ? -1 : 1))

export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.code === 409
export const isGone = (error: unknown): boolean => error instanceof ApiError && error.code === 404
