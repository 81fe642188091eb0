// Cluster events, and the queueing hints with which a plugin declares which events can make its rejected pods schedulable.
// There is no periodic flush of unschedulable pods. ../queueing-hints.ts runs the hints.

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

/** A change to an object: only `next` if it was added, only `old` if it was deleted, both if it was updated. */
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
  /** A pod left its node, because it terminated, was deleted or could not be bound, or is no longer nominated on the node. */
  podRemoved: { readonly nodeName: string; readonly claims: readonly ObjectKey[] }
  podDeleted: { readonly key: ObjectKey }
  /** Internal state of a plugin changed. The event concerns the pods that the plugin's hints index under these keys. */
  pluginState: { readonly keys: readonly string[] }
}

export type EventName = keyof Events
export type ClusterEvent<E extends EventName = EventName> = { [N in E]: { readonly on: N } & Events[N] }[E]

export interface QueueingHint<E extends EventName = EventName> {
  readonly on: E
  /** `class`: the pods of an equivalence class share their keys, and only the first is tried. `pod`: keys differ per pod. */
  readonly scope: 'class' | 'pod'
  /** The keys under which an unschedulable pod is indexed. */
  keysOfPod(pod: PodInfo): readonly string[]
  /** The keys of the pods that an event concerns. */
  keysOfEvent(event: ClusterEvent<E>): readonly string[]
  /** Decides for one pod. Without this function, the pod is queued. */
  hint?(pod: PodInfo, event: ClusterEvent<E>, context: HintContext): Hint
}

/** A rejection is added to the recorded one: the pod stays unschedulable and also waits for the hints of that plugin. */
export type Hint = 'queue' | 'skip' | PluginRejection

export interface HintContext {
  /** Why the pod is unschedulable. */
  readonly rejection: Rejection
  /** Filters one node. Returns undefined if the pod fits, or would fit with a remedy or after a preemption. */
  checkNode(pod: PodInfo, nodeName: string): PluginRejection | 'no such node' | undefined
}

export interface PluginRejection {
  readonly plugin: string
  readonly status: Status
}
