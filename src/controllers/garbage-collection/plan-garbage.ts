// Plans garbage collection of one object. Pure: the object, the state of its owners and its dependents in, one action out.
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import type { Node } from './owner-graph.ts'

export const FOREGROUND = 'foregroundDeletion'
export const ORPHAN = 'orphan'

/** `leaving`: in foreground deletion, waiting for this object. `unknown`: its kind is not served. */
export type OwnerState = 'present' | 'leaving' | 'absent' | 'unknown'

export type GarbageAction =
  | { readonly do: 'nothing' }
  /** No owner exists. */
  | { readonly do: 'delete'; readonly propagation: 'Background' | 'Foreground' | 'Orphan' }
  /** Some owners no longer exist. */
  | { readonly do: 'remove-owners'; readonly uids: readonly string[] }
  /** Foreground deletion: delete the dependents first. */
  | { readonly do: 'delete-dependents'; readonly dependents: readonly Node[] }
  /** Orphan deletion: remove the object from its dependents' owners. */
  | { readonly do: 'orphan-dependents'; readonly dependents: readonly Node[] }
  /** The object is in a cycle of owners that wait for each other: stop blocking its owners. */
  | { readonly do: 'unblock' }
  /** Nothing blocks the deletion. */
  | { readonly do: 'remove-finalizer'; readonly finalizer: string }

export interface Situation {
  readonly node: Node
  readonly owners: readonly { readonly reference: OwnerReference; readonly state: OwnerState }[]
  readonly dependents: readonly Node[]
  /** Owners in foreground deletion form a cycle through the object. */
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
    const blocking = dependents.filter((dependent) => blocks(dependent, metadata.uid))
    if (isInCycle) return { do: 'unblock' }
    if (blocking.length === 0) return { do: 'remove-finalizer', finalizer: FOREGROUND }
    const staying = blocking.filter(({ object }) => !object.metadata.deletionTimestamp)
    return staying.length > 0 ? { do: 'delete-dependents', dependents: staying } : { do: 'nothing' }
  }
  if (owners.length === 0) return { do: 'nothing' }
  const remaining = owners.filter(({ state }) => state === 'present' || state === 'unknown')
  const absent = owners.filter(({ state }) => state === 'absent')
  if (remaining.length > 0) {
    return absent.length > 0
      ? { do: 'remove-owners', uids: absent.map(({ reference }) => reference.uid) }
      : { do: 'nothing' }
  }
  if (owners.some(({ state }) => state === 'leaving'))
    return { do: 'delete', propagation: dependents.length > 0 ? 'Foreground' : 'Background' }
  if (finalizers.includes(ORPHAN)) return { do: 'delete', propagation: 'Orphan' }
  return { do: 'delete', propagation: finalizers.includes(FOREGROUND) ? 'Foreground' : 'Background' }
}

const blocks = ({ object }: Node, ownerUid: string): boolean =>
  object.metadata.ownerReferences?.some(({ uid, blockOwnerDeletion }) => uid === ownerUid && blockOwnerDeletion) ??
  false
