// The input of a simulation: a snapshot with the changes that the user requested, and the objects to create and place.
import type { Claim, StoredPod } from '../cluster.ts'
import type { Snapshot } from '../snapshot.ts'
import type { NodeGroup } from './node-group.ts'

export interface Scenario {
  readonly snapshot: Snapshot
  /** Claims to create, in this order and before the pods. */
  readonly claims: readonly Claim[]
  /** Pods to create, in this order. */
  readonly pods: readonly StoredPod[]
  /** Pods of the snapshot without a node, which are placed before the new pods of the same priority. */
  readonly unplacedPods: readonly StoredPod[]
  /** The template of the nodes to add. */
  readonly group?: NodeGroup
  /** The number of nodes to add. Without it, as many as the pods need. */
  readonly nodeCount?: number
}
