// A simulation's result. Plain data, so that it can be printed and compared.
import type { Diagnosis } from '../diagnosis.ts'

export interface SimulationResult {
  /** Whether every pod was placed and every object admitted. */
  readonly fits: boolean
  readonly placed: readonly PlacedPodResult[]
  readonly rejected: readonly RejectedObject[]
  readonly nodes: readonly RemainingNode[]
  readonly classes: readonly RemainingClass[]
  /** The quotas in the namespaces of the new objects. */
  readonly quotas: readonly QuotaUsage[]
  /** Set if nodes of a group were added. */
  readonly nodeGroup?: NodeGroupResult
  /** What the simulation assumed or could not check. */
  readonly notes: readonly string[]
}

export interface PlacedPodResult {
  readonly namespace: string
  readonly name: string
  readonly node: string
  readonly volumes: readonly PlacedVolume[]
}

export interface PlacedVolume {
  readonly claim: string
  readonly class: string
  /** The request of the claim. */
  readonly size: string
  /** The existing volume. Absent if a volume is created. */
  readonly volume?: string
}

export interface RejectedObject {
  readonly kind: 'Pod' | 'PersistentVolumeClaim'
  readonly namespace: string
  readonly name: string
  readonly message: string
  /** The causes, as `stowage why` reports them. Absent if an earlier pod has the same message, or after many messages. */
  readonly diagnosis?: Diagnosis
}

export interface RemainingNode {
  readonly name: string
  readonly isNew: boolean
  readonly pods: number
  /** The allocatable resources that the requests of all pods leave free. Empty if the node reports none. */
  readonly left: Readonly<Record<string, string>>
}

export interface RemainingClass {
  readonly name: string
  /** The sum over the segments. Classes of one driver may share it. */
  readonly free: string
  /** The free capacity of the segment with the most. */
  readonly largestFree: string
  readonly segments: readonly RemainingSegment[]
}

/** The capacity that remains of one CSIStorageCapacity object. */
export interface RemainingSegment {
  /** NAMESPACE/NAME of the CSIStorageCapacity object. */
  readonly report: string
  /** The label selector of its nodes; empty for all nodes. */
  readonly topology: string
  readonly capacity: string
  readonly free: string
}

export interface QuotaUsage {
  readonly namespace: string
  readonly name: string
  readonly hard: Readonly<Record<string, string>>
  readonly used: Readonly<Record<string, string>>
}

interface NodeGroupResult {
  readonly name: string
  /** The number of nodes that were added. */
  readonly nodes: number
  /** Whether the simulation searched for the number of nodes that the pods need. */
  readonly isSearched: boolean
}
