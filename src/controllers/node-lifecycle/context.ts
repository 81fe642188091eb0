// The dependencies that the node lifecycle controllers share. node-lifecycle-controllers.ts creates them.
import type { Lease } from '../../api/kinds/lease/lease-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import type { Cache, EventRecorder } from '../../runtime/index.ts'
import type { Heartbeats } from './heartbeats.ts'
import type { NodeLifecycleMetrics } from './metrics.ts'
import type { TolerationTimes } from './toleration-times.ts'

export interface NodeLifecycleContext {
  readonly client: Client
  readonly clock: Clock
  readonly nodes: Cache<Node>
  readonly leases: Cache<Lease>
  readonly pods: Cache<Pod>
  readonly nodeEvents: Pick<EventRecorder, 'record'>
  readonly evictionEvents: Pick<EventRecorder, 'record'>
  readonly metrics: NodeLifecycleMetrics | undefined
  readonly heartbeats: Heartbeats
  readonly tolerationTimes: TolerationTimes
  /** Reconciles the node again after this time. A later call for the same node replaces the time. */
  readonly recheckAfter: (nodeName: string, ms: number) => void
  /** The monotonic time since which a node with pods has had no Node object. One entry per such node. */
  readonly missingSinceMs: Map<string, number>
  /** The uids of the existing nodes whose registration event was recorded, by name. */
  readonly registeredUids: Map<string, string>
  readonly limits: Limits
}

export interface Limits {
  readonly monitorGraceMs: number
  readonly startupGraceMs: number
  readonly quarantineMs: number
  readonly terminatedPodsMax: number
}

/** The namespace of node leases, which are named after their nodes. */
export const NODE_LEASE_NAMESPACE = 'kube-node-lease'
