// The input of a diagnosis or a simulation: the objects of each kind, the rules that the user lacks to read more of them, and
// the kinds that the server does not serve. read-snapshot.ts reads it; the lists are separate requests, so they can have
// different revisions.
import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { volumeAttributesClassKind } from '../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { eventKind } from '../api/kinds/event/event.ts'
import { limitRangeKind } from '../api/kinds/limit-range/limit-range.ts'
import { nodeKind } from '../api/kinds/node/node.ts'
import { operationKind } from '../api/kinds/operation/operation.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { priorityClassKind } from '../api/kinds/priority-class/priority-class.ts'
import { resourceQuotaKind } from '../api/kinds/resource-quota/resource-quota.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../api/kinds/volume-attachment/volume-attachment.ts'
import type { ListObjects } from '../api/quota/index.ts'

export const SNAPSHOT_KINDS = {
  pods: podKind,
  nodes: nodeKind,
  claims: persistentVolumeClaimKind,
  volumes: persistentVolumeKind,
  classes: storageClassKind,
  attributesClasses: volumeAttributesClassKind,
  drivers: csiDriverKind,
  csiNodes: csiNodeKind,
  attachments: volumeAttachmentKind,
  capacities: csiStorageCapacityKind,
  quotas: resourceQuotaKind,
  limitRanges: limitRangeKind,
  priorityClasses: priorityClassKind,
  events: eventKind,
  operations: operationKind,
} as const

export type SnapshotList = keyof typeof SNAPSHOT_KINDS

type ObjectOf<K> = K extends Kind<infer T> ? T : KubeObject

export type SnapshotObjects = {
  readonly [L in SnapshotList]: readonly Readonly<Stored<ObjectOf<(typeof SNAPSHOT_KINDS)[L]>>>[]
}

/** A list that the user may not read, or may read only in the namespace of the diagnosed object. */
export interface MissingRule {
  readonly list: SnapshotList
  /** The rule that the user lacks, such as `list pods in all namespaces`. */
  readonly rule: string
  /** Set if the list was read in the namespace of the diagnosed object. */
  readonly isPartial?: true
}

export interface Snapshot extends SnapshotObjects {
  readonly nowMs: number
  readonly missingRules: readonly MissingRule[]
  /** The lists that the server does not serve. */
  readonly notServed: ReadonlySet<SnapshotList>
}

/** Returns the list function of a namespace for quotas. It lists pods and claims, and nothing of other kinds. */
export function listObjectsOf(snapshot: Snapshot, namespace: string | undefined): ListObjects {
  return ({ plural }) => {
    const objects = plural === 'pods' ? snapshot.pods : plural === 'persistentvolumeclaims' ? snapshot.claims : []
    return objects.filter(({ metadata }) => metadata.namespace === namespace)
  }
}
