// What makes and deletes volumes, as the lifecycle around it sees it. Three things implement it: a CSI driver (csi/),
// a plugin in this process and a vendor's plugin in its own (both through plugin.ts).
// It knows storage; which claims, when again, events, the PV object and its finalizers are provision-claim.ts and
// delete-volume.ts.

import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume, PersistentVolumeSpec } from '../../api/kinds/volume/volume-schema.ts'
import type { Claim } from '../../volumes/matching.ts'

export interface Provisioner {
  /** What classes call it, and what its volumes carry as provisioned-by. */
  readonly name: string
  /** Where several instances of it work side by side, one per node: which this is. What it begins is then its own. */
  readonly instance?: string
  /**
   * Makes the volume, or finds what an earlier try made under the same name. Says how it went; does not throw.
   * Waits for `aboutToAsk` right before the storage hears of it, and lets through what that throws: what is refused
   * unasked leaves no trace on the claim.
   */
  provision(
    request: ProvisionRequest,
    signal: AbortSignal,
    aboutToAsk?: () => Promise<void>,
    onOverdue?: Overdue,
  ): Promise<Provisioned>
  /**
   * Deletes what is behind a volume; nothing there any more is a success. Also asked about volumes that were made and
   * could not be saved. Says how it went; does not throw.
   */
  delete(volume: Readonly<PersistentVolume>, signal: AbortSignal, onOverdue?: Overdue): Promise<Deleted>
  /** Whether a volume that carries no provisioner's name is this one's to delete, by its source. */
  owns(volume: Readonly<PersistentVolume>): boolean
  /** Whether this instance takes a claim; one of several instances, one per node, takes those of its node. Default: all. */
  takes?(request: Omit<ProvisionRequest, 'volumeName'>, signal: AbortSignal): Promise<boolean>
  /** The claim's try is over for good: what was kept for its next try may go. */
  forget?(claimUid: string): void
}

/** Told when a call has had its time and goes on all the same; it is still waited for. */
export type Overdue = (because: string) => void

export interface ProvisionRequest {
  readonly claim: Claim
  readonly storageClass: Readonly<StorageClass>
  /** Derived from the claim's uid: two provisioners of one claim collide instead of making two volumes. */
  readonly volumeName: string
  /** Where the first pod will run, for classes that wait for one. */
  readonly selectedNode: string | undefined
}

export type Provisioned =
  | { readonly is: 'made'; readonly volume: NewVolume }
  /** `isUnasked`: the storage did not hear of this try; whatever an earlier one left is as it was. */
  | { readonly is: 'failed'; readonly how: Failure; readonly because: string; readonly isUnasked?: true }
  /** Not for this provisioner after all; nobody is told. */
  | { readonly is: 'ignored'; readonly because: string }

/**
 *   final        nothing was made, and nothing is being made
 *   infeasible   as final, and the same request will fail again: try rarely
 *   reschedule   as final, but another node may do: give the choice of node back
 *   unfinished   something may have been made, or still be in the making: only the same request tells
 *   noChange     the storage was not reached; whatever an earlier try left is as it was
 */
export type Failure = 'final' | 'infeasible' | 'reschedule' | 'unfinished' | 'noChange'

/** The parts of a PersistentVolume that only the storage knows. The lifecycle adds name, claim, class and policy. */
export interface NewVolume {
  /** Why it cannot be given to the claim after all: it is deleted again, and the claim starts over. */
  readonly unwanted?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** Source, capacity, and whatever else differs from what claim and class say. */
  readonly spec: Partial<PersistentVolumeSpec> & Pick<PersistentVolumeSpec, 'capacity'>
}

export type Deleted =
  | { readonly is: 'deleted' }
  /** `isNotOurs`: whoever made what is behind it, it was not this provisioner. Nothing was touched, nor will be. */
  | { readonly is: 'failed'; readonly because: string; readonly isNotOurs?: true }
  /** Another instance's to delete; nobody is told. */
  | { readonly is: 'ignored'; readonly because: string }
