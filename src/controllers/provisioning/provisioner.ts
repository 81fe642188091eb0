// The interface between the controllers and the storage: creates and deletes volumes. Implemented by a CSI driver (csi/)
// and by plugins in this or a vendor's process (plugin.ts). Selection of claims, retries, events and the PV are the job
// of the controllers (provision-claim.ts, delete-volume.ts).

import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume, PersistentVolumeSpec } from '../../api/kinds/volume/volume-schema.ts'
import type { Claim } from '../../volumes/matching.ts'

export interface Provisioner {
  /** The provisioner in classes, and the value of the provisioned-by annotation. */
  readonly name: string
  /** The node, if each node runs its own instance. Each instance then has its own intent. */
  readonly instance?: string
  /**
   * Creates the volume, or finds the one that an earlier try created under the same name. Returns failures and does not
   * throw. Awaits `beforeCreate` right before the storage is called and rethrows its error: a request that is rejected
   * without a call leaves no intent on the claim.
   */
  provision(
    request: ProvisionRequest,
    signal: AbortSignal,
    beforeCreate?: () => Promise<void>,
    onOverdue?: OverdueCallback,
  ): Promise<ProvisionResult>
  /**
   * Deletes the storage of a volume; succeeds if it does not exist. Also called for volumes without a PV. Returns failures
   * and does not throw.
   */
  delete(volume: Readonly<PersistentVolume>, signal: AbortSignal, onOverdue?: OverdueCallback): Promise<DeleteResult>
  /** Whether a volume without the provisioned-by annotation belongs to this provisioner, by its source. */
  owns(volume: Readonly<PersistentVolume>): boolean
  /** Whether this instance provisions for the claim; an instance per node accepts claims of its node. Default: all. */
  accepts?(request: Omit<ProvisionRequest, 'volumeName'>, signal: AbortSignal): Promise<boolean>
  /** There will be no further try for the claim: its state can be dropped. */
  forget?(claimUid: string): void
}

/** Called when a call exceeds its time limit; the call is still awaited. */
export type OverdueCallback = (because: string) => void

export interface ProvisionRequest {
  readonly claim: Claim
  readonly storageClass: Readonly<StorageClass>
  /** Derived from the claim's uid, so that two provisioners of one claim collide instead of creating two volumes. */
  readonly volumeName: string
  /** The node of the first pod, for WaitForFirstConsumer classes. */
  readonly selectedNode: string | undefined
}

export type ProvisionResult =
  | { readonly is: 'provisioned'; readonly volume: NewVolume }
  /** `isNotCalled`: the storage was not called in this try; the result of earlier tries is unchanged. */
  | { readonly is: 'failed'; readonly failure: Failure; readonly because: string; readonly isNotCalled?: true }
  /** Not for this provisioner after all; no event is recorded. */
  | { readonly is: 'ignored'; readonly because: string }

/**
 *   final        no volume exists or is being created
 *   infeasible   as final, and the same request will fail again: retry rarely
 *   reschedule   as final, but another node may work: remove the selected node
 *   unfinished   a volume may exist or be in creation: only a repeated request can determine which
 *   noChange     the storage was not reached; the result of earlier tries is unchanged
 */
export type Failure = 'final' | 'infeasible' | 'reschedule' | 'unfinished' | 'noChange'

/** The parts of a PersistentVolume that the storage determines. build-volume.ts adds name, claim, class and policy. */
export interface NewVolume {
  /** Why it cannot be bound to the claim: it is deleted again, and the claim starts over. */
  readonly unusableReason?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Source, capacity, and everything that differs from claim and class. */
  readonly spec: Partial<PersistentVolumeSpec> & Pick<PersistentVolumeSpec, 'capacity'>
}

export type DeleteResult =
  | { readonly is: 'deleted' }
  /** `isForeign`: another provisioner created it. Nothing was changed, and no retry will change anything. */
  | { readonly is: 'failed'; readonly because: string; readonly isForeign?: true }
  /** For another instance to delete; no event is recorded. */
  | { readonly is: 'ignored'; readonly because: string }
