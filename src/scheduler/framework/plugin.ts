// The plugin interface, with the extension points of the Kubernetes scheduling framework. Each plugin is a folder of
// ../plugins and is listed in ../plugins/registry.ts.
//
//   preFilter → filter (per node) → score → reserve → preBind → bind → postBind
//                  └─ no node passes: explain, postFilter, remedies  └─ failed: unreserve
//
// preFilter reads the pod once and returns the state that is passed to the later steps. filter runs for many nodes per pod and
// must be cheap.
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client, ObjectKey } from '../../client/index.ts'
import type { EventRecorder } from '../../runtime/index.ts'
import type { Placement } from '../../volumes/placement.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import type { SchedulerMetrics } from '../metrics.ts'
import type { ClusterEvent, QueueingHint } from './cluster-events.ts'
import type { SchedulerCaches } from './scheduler-caches.ts'
import type { PreFilterResult, RejectionDetail, Status } from './status.ts'

export interface Plugin<S = unknown> {
  readonly name: string
  /** Returns the factor by which this plugin's scores for the pod are multiplied. Default 1. */
  weight?(state: S): number
  /** The cluster events that can make a pod that this plugin rejected schedulable. */
  readonly events: readonly QueueingHint[]
  /** Whether preFilter and filter run again after preBind, e.g. to detect a cordon. They must read only the pod and the node. */
  readonly isRecheckedBeforeBind?: true
  /** Reason and message of the operation during preBind, and of the pod's condition and event if preBind is slow. */
  readonly slowPreBind?: { readonly reason: string; message(nodeName: string): string }

  preFilter(pod: PodInfo): PreFilterResult<S>
  filter?(state: S, node: NodeInfo): Status | undefined
  /**
   * Returns the state as if the pod had been added to the node, or removed from it. A plugin needs these two only if its state
   * depends on pods beyond those of the node passed to filter. They are not called if preFilter returned SKIP.
   */
  addPod?(state: S, pod: PodInfo, node: NodeInfo): S
  removePod?(state: S, pod: PodInfo, node: NodeInfo): S
  /** Returns the objects and amounts behind a rejection by filter. For diagnosis; the scheduler does not call it. */
  detailRejection?(state: S, node: NodeInfo): readonly RejectionDetail[]
  /** Whether to use the node only if no other node passes the filters. Not part of the Kubernetes framework. */
  avoid?(state: S, node: NodeInfo): boolean
  /** Returns 0 to SCORE_MAX per node, higher is better, or undefined if all nodes are equal. */
  score?(state: S, nodes: readonly NodeInfo[]): readonly number[] | undefined
  /** Reserves resources for the pod on this node. Synchronous, so that no other pod can be given the same resources. */
  reserve?(state: S, node: NodeInfo): void
  /** Undoes reserve after the attempt has failed. */
  unreserve?(state: S, node: NodeInfo): void
  /** Whether preBind has work to do. Default true. */
  preBindPreFlight?(state: S): boolean
  /** Writes the reservations and resolves when the node is ready for the pod. A rejection fails the attempt. */
  preBind?(state: S, node: NodeInfo): Promise<void>
  /** Called after the pod is bound and API objects represent its reservations. */
  postBind?(state: S, node: NodeInfo): void

  /** Returns sentences to add to the message after filters have rejected every node. */
  explain?(state: S, statuses: NodeStatuses): string | undefined
  /** Looks for pods to preempt after filters have rejected every node. Decides only; the scheduler applies the result. */
  postFilter?(attempt: RejectedAttempt): PostFilterResult | undefined
  /** Returns changes that may make a rejected pod fit. The scheduler applies the first with which the pod fits on a node. */
  remedies?(pod: PodInfo): readonly Remedy<S>[]

  /**
   * Returns the data that this plugin's results depend on, as JSON. Pods with equal signatures of all plugins form an
   * equivalence class: while one is unschedulable, the others are not evaluated. UNSIGNABLE excludes the pod from any class.
   */
  signPod?(pod: PodInfo): unknown
  /** Returns the volumes that reserve selected for the pod's claims. For simulation; the scheduler does not call it. */
  reservedVolumes?(state: S): readonly ReservedVolume[]
  /** Returns the bytes that are free according to each capacity report. For simulation; the scheduler does not call it. */
  freeCapacity?(): ReadonlyMap<ObjectKey, bigint>
  /** Called for every event, after the cluster state has been updated and before pods are requeued. */
  observe?(event: ClusterEvent): void
  /** The number of reservations that no API object represents yet. */
  readonly reservations?: number
  /** Fails operations in progress and cancels timers. */
  stop?(): void
}

export interface ReservedVolume {
  readonly claimKey: ObjectKey
  /** The existing volume. Undefined if a volume is to be created. */
  readonly volumeName?: string
  /** The capacity report with the space of a volume to create. Undefined if the driver does not track capacity. */
  readonly reportKey?: ObjectKey
}

/** The status with which each node was rejected. */
export type NodeStatuses = ReadonlyMap<NodeInfo, Status>

/** A plugin that did not skip the pod, with the state that its preFilter returned. */
export interface ActivePlugin {
  readonly plugin: Plugin
  readonly state: unknown
}

export interface RejectedAttempt {
  readonly pod: PodInfo
  readonly active: readonly ActivePlugin[]
  readonly statuses: NodeStatuses
}

export type PostFilterResult =
  /** The pod fits on the node once the victims have left it. */
  | {
      readonly is: 'nominated'
      readonly message: string
      readonly nodeName: string
      /** The pods to delete, and those that are being deleted already. */
      readonly victims: readonly PodInfo[]
      /** Deletes the victims while `isWaiting` returns true. Rejects if the server rejects a write. */
      apply(isWaiting: () => boolean): Promise<void>
    }
  /** The pod keeps its nomination and waits for an earlier preemption to complete. */
  | { readonly is: 'waiting'; readonly message: string }
  /** Preemption is not allowed or does not help: the pod loses its nomination. */
  | { readonly is: 'rejected'; readonly message: string }

/** Releases resources so that the pod fits, by other means than preemption. */
export interface Remedy<S = unknown> {
  /** Evaluates the pod as if the remedy had been applied. */
  preFilter(): PreFilterResult<S>
  /** Describes the remedy in the pod's event and condition. */
  readonly message: string
  /** Applies the remedy. If the promise rejects, the scheduler looks for a remedy again after a backoff. */
  apply(): Promise<void>
}

/** The dependencies that are passed to a plugin's constructor. */
export interface PluginHandle {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly events: EventRecorder
  readonly caches: SchedulerCaches
  readonly cluster: ClusterState
  readonly metrics: SchedulerMetrics | undefined
  /** Runs a write as soon as the limit of concurrent writes allows. */
  readonly write: <T>(run: () => Promise<T>) => Promise<T>
  /** Emits an event for a change inside the plugin that no API object represents. */
  readonly emit: (event: ClusterEvent) => void
  /** How long preBind may take. */
  readonly bindTimeoutMs: number
  readonly reservesCapacity: boolean
  /** The placement policy of classes that set none. */
  readonly defaultPlacement: Placement | undefined
}

export const UNSIGNABLE = Symbol('unsignable')
export const SCORE_MAX = 100
