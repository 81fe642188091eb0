// The interface between the controllers and the storage, which creates and deletes volumes. csi/ implements it for CSI
// drivers and plugin.ts for plugins. The controllers select claims, retry, record events and write PVs
// (provision-claim.ts, reconcile-volume.ts).

import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume, PersistentVolumeSpec } from '../../api/kinds/volume/volume-schema.ts'
import type { OperationDetails } from '../../base/operation-details.ts'
import type { Claim } from '../../volumes/matching.ts'

export interface Provisioner {
  /** The provisioner name in storage classes and in the provisioned-by annotation. */
  readonly name: string
  /** The node's name if each node runs its own instance. Each instance has its own intent. */
  readonly instance?: string
  /**
   * Creates the volume, or finds the volume that an earlier attempt created with the same name. Returns failures and does
   * not throw. Awaits `beforeCreate`, which sets the intent, immediately before the storage is called and rethrows its
   * error.
   */
  provision(
    request: ProvisionRequest,
    signal: AbortSignal,
    beforeCreate?: () => Promise<void>,
    onOverdue?: OverdueCallback,
  ): Promise<ProvisionResult>
  /**
   * Deletes a volume's storage. Succeeds if it does not exist. Also called for volumes without a PV. Returns failures
   * and does not throw.
   */
  delete(volume: Readonly<PersistentVolume>, signal: AbortSignal, onOverdue?: OverdueCallback): Promise<DeleteResult>
  /** Whether the source of a volume without the provisioned-by annotation belongs to this provisioner. */
  owns(volume: Readonly<PersistentVolume>): boolean
  /** Whether this instance provisions the claim. A per-node instance accepts only claims of its node. Default: true. */
  accepts?(request: Omit<ProvisionRequest, 'volumeName'>, signal: AbortSignal): Promise<boolean>
  /** Whether the node is lost, so that the storage cannot create a volume for it. Default: false. */
  isLostNode?(nodeName: string): boolean
  /** Discards the state of a claim for which there will be no further attempt. */
  forget?(claimUid: string): void
}

/** Called if a call exceeds its timeout. The call is still awaited. */
export type OverdueCallback = (message: string) => void

export interface ProvisionRequest {
  readonly claim: Claim
  readonly storageClass: Readonly<StorageClass>
  /** Derived from the claim's uid, and the same in every attempt. */
  readonly volumeName: string
  /** The node of the first consumer, if the class is WaitForFirstConsumer. */
  readonly selectedNode: string | undefined
}

export type ProvisionResult =
  | { readonly is: 'provisioned'; readonly volume: NewVolume }
  /** `isNotCalled` is set if the storage was not called. The result of earlier attempts is then unchanged. */
  | {
      readonly is: 'failed'
      readonly failure: Failure
      readonly message: string
      readonly isNotCalled?: true
      readonly details?: OperationDetails
    }
  /** The claim does not belong to this provisioner. No failure is recorded. */
  | { readonly is: 'ignored'; readonly message: string }

/**
 *   final        no volume exists or is being created
 *   infeasible   like final, and the same request will fail again, so it is retried rarely
 *   reschedule   like final, but another node may work, so the selected node is removed
 *   unfinished   a volume may exist or be in creation, which only a repeated request can determine
 *   noChange     the result of earlier attempts is unchanged, for example because the storage was not reached
 */
export type Failure = 'final' | 'infeasible' | 'reschedule' | 'unfinished' | 'noChange'

/** The fields of a PersistentVolume that the storage determines. build-volume.ts adds name, claimRef, class and policy. */
export interface NewVolume {
  /** Why the volume cannot be bound to the claim. The volume is then deleted and provisioned again. */
  readonly unusableReason?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Source, capacity and all fields that differ from those of the claim and the class. */
  readonly spec: Partial<PersistentVolumeSpec> & Pick<PersistentVolumeSpec, 'capacity'>
}

export type DeleteResult =
  | { readonly is: 'deleted' }
  /** `isForeign` is set if the volume does not belong to this provisioner. It was not changed, and a retry is useless. */
  | { readonly is: 'failed'; readonly message: string; readonly isForeign?: true; readonly details?: OperationDetails }
  /** The volume belongs to another instance. No event is recorded. */
  | { readonly is: 'ignored'; readonly message: string }
