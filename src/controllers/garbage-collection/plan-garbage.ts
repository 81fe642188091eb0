// Plans the garbage collection of one object from its metadata, the states of its owners and its dependents. Pure.
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import type { GraphNode } from './owner-graph.ts'

export const FOREGROUND = 'foregroundDeletion'
const ORPHAN = 'orphan'

/**
 * An owner's state. A `terminating` owner is in foreground deletion and waits for this object. An `unknown` owner
 * is of a kind that is not served, or is a namespaced owner of a cluster-scoped object. It counts as existing.
 */
export type OwnerState = 'present' | 'terminating' | 'absent' | 'unknown'

export type GarbageAction =
  | { readonly do: 'nothing' }
  /** No owner exists, except for owners in foreground deletion. */
  | { readonly do: 'delete'; readonly propagation: 'Background' | 'Foreground' | 'Orphan' }
  /** Some owners no longer exist. */
  | { readonly do: 'remove-owners'; readonly uids: readonly string[] }
  /** The object is in foreground deletion, and its dependents must be deleted first. */
  | { readonly do: 'delete-dependents'; readonly dependents: readonly GraphNode[] }
  /** The object is in orphan deletion, and must be removed from its dependents' owner references. */
  | { readonly do: 'orphan-dependents'; readonly dependents: readonly GraphNode[] }
  /** The object is in a cycle of owners that wait for each other, and must stop blocking its owners. */
  | { readonly do: 'unblock-owners' }
  /** No dependent blocks the deletion. */
  | { readonly do: 'remove-finalizer'; readonly finalizer: string }

export interface Situation {
  readonly node: GraphNode
  readonly owners: readonly { readonly reference: OwnerReference; readonly state: OwnerState }[]
  readonly dependents: readonly GraphNode[]
  /** Whether owners in foreground deletion form a cycle through the object. */
  readonly isInCycle?: boolean
}

export function planGarbage({ node, owners, dependents, isInCycle }: Situation): GarbageAction {
  const { metadata } = node.object
  const finalizers = metadata.finalizers ?? []
  if (metadata.deletionTimestamp) {
    if (finalizers.includes(ORPHAN)) {
      return dependents.length > 0
        ? { do: 'orphan-dependents', dependents }
        : { do: 'remove-finalizer', finalizer: ORPHAN }
    }
    if (!finalizers.includes(FOREGROUND)) return { do: 'nothing' } // background deletion
    if (isInCycle) return { do: 'unblock-owners' }
    const blockingDependents = dependents.filter((dependent) => blocksOwner(dependent, metadata.uid))
    if (blockingDependents.length === 0) return { do: 'remove-finalizer', finalizer: FOREGROUND }
    const undeletedDependents = blockingDependents.filter(({ object }) => !object.metadata.deletionTimestamp)
    return undeletedDependents.length > 0
      ? { do: 'delete-dependents', dependents: undeletedDependents }
      : { do: 'nothing' }
  }
  if (owners.length === 0) return { do: 'nothing' }
  const remainingOwners = owners.filter(({ state }) => state === 'present' || state === 'unknown')
  const absentOwners = owners.filter(({ state }) => state === 'absent')
  if (remainingOwners.length > 0) {
    return absentOwners.length > 0
      ? { do: 'remove-owners', uids: absentOwners.map(({ reference }) => reference.uid) }
      : { do: 'nothing' }
  }
  if (owners.some(({ state }) => state === 'terminating'))
    return { do: 'delete', propagation: dependents.length > 0 ? 'Foreground' : 'Background' }
  if (finalizers.includes(ORPHAN)) return { do: 'delete', propagation: 'Orphan' }
  return { do: 'delete', propagation: finalizers.includes(FOREGROUND) ? 'Foreground' : 'Background' }
}

const blocksOwner = ({ object }: GraphNode, ownerUid: string): boolean =>
  object.metadata.ownerReferences?.some(({ uid, blockOwnerDeletion }) => uid === ownerUid && blockOwnerDeletion) ??
  false
