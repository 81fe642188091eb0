// The plugin interface, with the steps of the Kubernetes scheduling framework. Each plugin is a folder of
// ../plugins and is listed in ../plugins/registry.ts; the core refers to no plugin by name.
//
//   preFilter → filter (per node) → score → reserve → preBind → bind → postBind
//                  └─ every node rejected: explain, postFilter      └─ failed: unreserve
//
// preFilter reads the pod once and returns the state that the later steps get: filter runs thousands of times per pod
// and must be cheap.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import type { SchedulerMetrics } from '../metrics.ts'
import type { ClusterEvent, QueueingHint } from './cluster-events.ts'
import type { SchedulerCaches } from './scheduler-caches.ts'
import type { PreFilterResult, Status } from './status.ts'

export interface Plugin<S = unknown> {
  readonly name: string
  /** Factor of this plugin's scores. Default 1. */
  readonly weight?: number
  /** The cluster events that can make a pod schedulable that this plugin rejected. */
  readonly events: readonly QueueingHint[]
  /** filter depends on the node alone. It runs again before binding if preBind took time, e.g. to notice a cordon. */
  readonly isRecheckedBeforeBind?: true
  /** The text of the pod's condition and event while preBind is slow. */
  readonly slowPreBind?: { readonly reason: string; message(nodeName: string): string }

  preFilter(pod: PodInfo): PreFilterResult<S>
  filter?(state: S, node: NodeInfo): Status | undefined
  /** Nodes to use only if no other passes the filters. Not part of the Kubernetes framework. */
  avoid?(state: S, node: NodeInfo): boolean
  /** 0 to SCORE_MAX per node, higher is better; undefined if all nodes are equal. */
  score?(state: S, nodes: readonly NodeInfo[]): readonly number[] | undefined
  /** Reserves what the pod gets on this node, so that the next pod is not given the same. Synchronous. */
  reserve?(state: S, node: NodeInfo): void
  /** Undoes reserve after the attempt has failed. */
  unreserve?(state: S, node: NodeInfo): void
  /** Whether preBind has work to do. Default true. */
  preBindPreFlight?(state: S): boolean
  /** Writes the reservations and resolves when the node is ready for the pod. A rejection fails the attempt. */
  preBind?(state: S, node: NodeInfo): Promise<void>
  /** The pod is bound: the API now shows the reservations. */
  postBind?(state: S, node: NodeInfo): void

  /** A sentence to add to the message when every node was rejected. */
  explain?(state: S, statuses: NodeStatuses): string | undefined
  /** What the plugin can change, after every node was rejected, so that the pod fits; the first that helps is applied. */
  postFilter?(pod: PodInfo): readonly Remedy<S>[]

  /**
   * What this plugin's results depend on, as JSON data. Pods with equal signatures of all plugins form an equivalence
   * class: while one is unschedulable, the others are not evaluated. UNSIGNABLE: the pod is in no class.
   */
  signPod?(pod: PodInfo): unknown
  /** Called for every event, after the cluster state has been updated and before pods are requeued. */
  observe?(event: ClusterEvent): void
  /** Reservations that no object shows yet. */
  readonly reservations?: number
  /** Fails operations in progress and cancels timers. */
  stop?(): void
}

/** The reason why a node was rejected, by node. */
export type NodeStatuses = ReadonlyMap<NodeInfo, Status>

/** Like preemption in Kubernetes: releases resources so that the pod fits. */
export interface Remedy<S = unknown> {
  /** The state with which the pod is evaluated as if the remedy had been applied. */
  preFilter(): PreFilterResult<S>
  /** The next operation, for the pod's owner. */
  readonly message: string
  apply(): Promise<void>
}

/** What a plugin is constructed from. */
export interface PluginHandle {
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  readonly caches: SchedulerCaches
  readonly cluster: ClusterState
  readonly metrics: SchedulerMetrics | undefined
  /** Runs a write as soon as the limit of concurrent writes allows. */
  readonly write: <T>(run: () => Promise<T>) => Promise<T>
  /** Requeues pods after a change inside the plugin that no API object shows. */
  readonly emit: (event: ClusterEvent) => void
  /** How long preBind may take. */
  readonly bindTimeoutMs: number
  readonly capacityReservation: boolean
}

export const UNSIGNABLE = Symbol('unsignable')
export const SCORE_MAX = 100
