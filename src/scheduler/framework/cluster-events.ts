// Cluster events, and the queueing hints by which a plugin declares which of them can make its rejected pods schedulable.
// A pod is evaluated again when a hint requeues it, and never on a timer alone. ../queueing-hints.ts runs them.

import type { KubeObject, Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { CSINode } from '../../api/kinds/csi-node/csi-node-schema.ts'
import type { CSIStorageCapacity } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import type { Rejection } from '../queue/unschedulable-pods.ts'
import type { Status } from './status.ts'

/** Added: only `next`. Deleted: only `old`. */
interface Change<T extends KubeObject> {
  readonly next?: Readonly<Stored<T>>
  readonly old?: Readonly<Stored<T>>
}

interface Events {
  node: Change<Node>
  csiNode: Change<CSINode>
  csiDriver: Change<CSIDriver>
  storageClass: Change<StorageClass>
  storageCapacity: Change<CSIStorageCapacity>
  volume: Change<PersistentVolume>
  claim: Change<PersistentVolumeClaim>
  attachment: Change<VolumeAttachment>
  /** A pod left its node: it finished, was deleted, or could not be bound. */
  podRemoved: { readonly nodeName: string; readonly claims: readonly ObjectKey[] }
  podDeleted: { readonly key: ObjectKey }
  /** State inside a plugin changed. Concerns the pods that the plugin's hints index under these keys. */
  pluginState: { readonly keys: readonly string[] }
}

export type EventName = keyof Events
export type ClusterEvent<E extends EventName = EventName> = { [N in E]: { readonly on: N } & Events[N] }[E]

export interface QueueingHint<E extends EventName = EventName> {
  readonly on: E
  /** `class`: pods of one equivalence class have the same keys, and the first of them is tried. `pod`: keys differ per pod. */
  readonly scope: 'class' | 'pod'
  /** The keys under which an unschedulable pod is indexed. */
  keysOfPod(pod: PodInfo): readonly string[]
  /** The keys an event concerns. */
  keysOfEvent(event: ClusterEvent<E>): readonly string[]
  /** Default: queue. */
  hint?(pod: PodInfo, event: ClusterEvent<E>, context: HintContext): Hint
}

/** A rejection: the pod is not tried, but waits from now on for what resolves this rejection, too. */
export type Hint = 'queue' | 'skip' | PluginRejection

export interface HintContext {
  /** Why the pod is unschedulable. */
  readonly rejection: Rejection
  /** Runs all filters for one node; undefined if the pod fits. */
  checkNode(pod: PodInfo, nodeName: string): PluginRejection | 'no such node' | undefined
}

export interface PluginRejection {
  readonly plugin: string
  readonly status: Status
}
