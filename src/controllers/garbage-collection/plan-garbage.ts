// Decides what garbage collection should do with one object. Pure: the object, what is known of its owners and its
// dependents in; one action out.
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import type { Node } from './owner-graph.ts'

export const FOREGROUND = 'foregroundDeletion'
export const ORPHAN = 'orphan'

/** What is known of an owner. `unknown`: its kind is not served here, so nobody can say. */
export type OwnerState = 'present' | 'leaving' | 'absent' | 'unknown'

export type GarbageAction =
  | { readonly do: 'nothing' }
  /** All owners are gone. */
  | { readonly do: 'delete'; readonly propagation: 'Background' | 'Foreground' | 'Orphan' }
  /** Some owners are gone, others stay. */
  | { readonly do: 'disown'; readonly uids: readonly string[] }
  /** It waits for its dependents: send them away first. */
  | { readonly do: 'delete-dependents'; readonly dependents: readonly Node[] }
  /** It wants its dependents to outlive it. */
  | { readonly do: 'orphan-dependents'; readonly dependents: readonly Node[] }
  /** It waits for itself in a ring of owners: it stops holding back the others. */
  | { readonly do: 'unblock' }
  /** Nothing holds it back any more. */
  | { readonly do: 'release'; readonly finalizer: string }

export interface Situation {
  readonly node: Node
  readonly owners: readonly { readonly reference: OwnerReference; readonly state: OwnerState }[]
  readonly dependents: readonly Node[]
  /** Following owners that wait for their dependents leads back to it. */
  readonly waitsForItself?: boolean
}

export function planGarbage({ node, owners, dependents, waitsForItself }: Situation): GarbageAction {
  const { metadata } = node.object
  const finalizers = metadata.finalizers ?? []
  if (metadata.deletionTimestamp) {
    if (finalizers.includes(ORPHAN)) {
      return dependents.length > 0 ? { do: 'orphan-dependents', dependents } : { do: 'release', finalizer: ORPHAN }
    }
    if (!finalizers.includes(FOREGROUND)) return { do: 'nothing' } // already on its way
    const blocking = dependents.filter((dependent) => blocks(dependent, metadata.uid ?? ''))
    if (waitsForItself) return { do: 'unblock' }
    if (blocking.length === 0) return { do: 'release', finalizer: FOREGROUND }
    const staying = blocking.filter(({ object }) => !object.metadata.deletionTimestamp)
    return staying.length > 0 ? { do: 'delete-dependents', dependents: staying } : { do: 'nothing' }
  }
  if (owners.length === 0) return { do: 'nothing' } // belongs to nobody
  const remaining = owners.filter(({ state }) => state === 'present' || state === 'unknown')
  const absent = owners.filter(({ state }) => state === 'absent')
  if (remaining.length > 0) {
    return absent.length > 0 ? { do: 'disown', uids: absent.map(({ reference }) => reference.uid) } : { do: 'nothing' }
  }
  if (owners.some(({ state }) => state === 'leaving'))
    return { do: 'delete', propagation: dependents.length > 0 ? 'Foreground' : 'Background' }
  if (finalizers.includes(ORPHAN)) return { do: 'delete', propagation: 'Orphan' }
  return { do: 'delete', propagation: finalizers.includes(FOREGROUND) ? 'Foreground' : 'Background' }
}

const blocks = ({ object }: Node, ownerUid: string): boolean =>
  object.metadata.ownerReferences?.some(({ uid, blockOwnerDeletion }) => uid === ownerUid && blockOwnerDeletion) ??
  false
