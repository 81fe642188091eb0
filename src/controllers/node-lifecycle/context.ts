// The dependencies of the node lifecycle controllers, composed once by node-lifecycle-controllers.ts.
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
  /** Reconciles a node again after this time, unless an event wakes it earlier. */
  readonly recheckAfter: (nodeName: string, ms: number) => void
  /** Nodes with pods but without a Node object: since when, on the monotonic clock. One entry per such node. */
  readonly missingSinceMs: Map<string, number>
  /** Uids of nodes whose registration event was recorded; only existing nodes. */
  readonly registeredUids: Map<string, string>
  readonly limits: Limits
}

export interface Limits {
  readonly monitorGraceMs: number
  readonly startupGraceMs: number
  readonly quarantineMs: number
  readonly finishedPodsMax: number
}

/** The namespace of node leases, which are named after their nodes. */
export const NODE_LEASES = 'kube-node-lease'

export const timestamp = (clock: Clock): string => `${new Date(clock.nowMs()).toISOString().slice(0, 19)}Z`
