// Creates the node lifecycle controllers: node health, taint eviction, pod garbage collection and the recovery of lost nodes.
//   key                     reconciled by              enqueued by
//   a node                  reconcile-node.ts          its changes, a new or deleted lease, and the end of its grace period
//   a pod on a tainted node evict-pod.ts               its node's taints, its changes, and the end of its toleration
//   a missing node          remove-lost-pods.ts        its pods and its deletion
//   a pod being deleted     remove-lost-pods.ts        its changes, and a node that goes out of service
//   terminated pods         remove-terminated-pods.ts  pods that terminate
//   a lost node             lost-nodes/                its changes and, while it is fenced, those of its objects
import type { Stored } from '../../api/kind.ts'
import { leaseKind } from '../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { keyOfObject } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  createController,
  createEventRecorder,
  type EventRecorder,
  source,
  type WorkQueue,
} from '../../runtime/index.ts'
import { type Limits, NODE_LEASE_NAMESPACE, type NodeLifecycleContext } from './context.ts'
import {
  areTaintsChanged,
  isHealthChanged,
  isPodChanged,
  keysIfBeingDeleted,
  keysIfOnTaintedNode,
  missingNodesOf,
  podsBeingDeletedOutOfService,
  podsOnTaintedNode,
} from './event-sources.ts'
import { EVICTION_COMPONENT, NODE_COMPONENT, nodeRemoved } from './events.ts'
import { evictPod } from './evict-pod.ts'
import { Heartbeats } from './heartbeats.ts'
import { createLostNodeController } from './lost-nodes/lost-node-controller.ts'
import type { NodeLifecycleMetrics } from './metrics.ts'
import { reconcileNode } from './reconcile-node.ts'
import { indexPods, mayRemovePodsOf, removePodOfOutOfServiceNode, removePodsOfMissingNode } from './remove-lost-pods.ts'
import { indexTerminatedPods, removeTerminatedPods, terminatedKeys } from './remove-terminated-pods.ts'
import { Timers } from './timers.ts'
import { TolerationTimes } from './toleration-times.ts'

export interface NodeLifecycleDeps extends ControllerDeps {
  readonly options?: NodeLifecycleOptions
  readonly nodeLifecycleMetrics?: NodeLifecycleMetrics
  /** The recorder of all events, which the caller runs. By default the controllers create and run their own. */
  readonly events?: Pick<EventRecorder, 'record'>
}

export interface NodeLifecycleOptions {
  /** A node that has not reported for this time is unreachable. Default 40 s. */
  readonly monitorGraceMs?: number
  /** A node that has never written a status is unreachable after this time. Default 60 s. */
  readonly startupGraceMs?: number
  /** How long pods of a node that does not exist are kept. Default 40 s. */
  readonly quarantineMs?: number
  /** The number of terminated pods to keep; 0 keeps all. Default 12,500. */
  readonly terminatedPodsMax?: number
}

export interface NodeLifecycleControllers {
  readonly queues: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

const LIMITS: Limits = {
  monitorGraceMs: 40_000,
  startupGraceMs: 60_000,
  quarantineMs: 40_000,
  terminatedPodsMax: 12_500,
}

export function createNodeLifecycleControllers(deps: NodeLifecycleDeps): NodeLifecycleControllers {
  const { client, caches, clock, random, log, metrics, nodeLifecycleMetrics } = deps
  const eventRecorders = deps.events
    ? []
    : [NODE_COMPONENT, EVICTION_COMPONENT].map((component) =>
        createEventRecorder({ client, clock, random, log, component }),
      )
  const timers = new Timers(clock)
  const context: NodeLifecycleContext = {
    client,
    clock,
    nodes: caches.of(nodeKind),
    leases: caches.of(leaseKind, { namespace: NODE_LEASE_NAMESPACE }),
    pods: caches.of(podKind),
    nodeEvents: deps.events ?? eventRecorders[0]!,
    evictionEvents: deps.events ?? eventRecorders[1]!,
    metrics: nodeLifecycleMetrics,
    heartbeats: new Heartbeats(clock),
    tolerationTimes: new TolerationTimes(),
    recheckAfter: (name, ms) => timers.set(name, ms, () => nodeController.queue.add(name)),
    missingSinceMs: new Map(),
    registeredUids: new Map(),
    limits: { ...LIMITS, ...deps.options },
  }
  const { nodes, leases, pods } = context
  indexPods(pods)
  indexTerminatedPods(pods)

  const sharedOptions = { clock, random, log, metrics }
  const nodeController = createController({
    ...sharedOptions,
    name: 'node_lifecycle_controller',
    operation: { component: 'node-lifecycle', name: 'MonitorNode' },
    sources: [
      source({ cache: nodes, keysOf: (node) => [keyOfObject(node)], matters: isHealthChanged }),
      source({
        cache: leases,
        keysOf: ({ metadata: { name } }) => [name],
        matters: () => false, // the subscription below records renewals for the next reconcile
      }),
    ],
    reconcile: (name) => reconcileNode(name, context),
  })
  const evictionController = createController({
    ...sharedOptions,
    name: 'noexec_taint_pod',
    operation: { component: 'node-lifecycle', name: 'Evict', cache: pods },
    sources: [
      source({ cache: nodes, keysOf: (node) => podsOnTaintedNode(node, context), matters: areTaintsChanged }),
      source({ cache: pods, keysOf: (pod) => keysIfOnTaintedNode(pod, context), matters: isPodChanged }),
    ],
    reconcile: (key) => evictPod(key, context),
  })
  const orphanController = createController({
    ...sharedOptions,
    name: 'orphaned_pods_nodes',
    operation: { component: 'node-lifecycle', name: 'RemovePods' },
    sources: [
      source({ cache: nodes, keysOf: (node) => [keyOfObject(node)], matters: () => false }),
      source({ cache: pods, keysOf: (pod) => missingNodesOf(pod, context), matters: isPodChanged }),
    ],
    reconcile: (nodeName, signal) => removePodsOfMissingNode(nodeName, context, signal),
  })
  const outOfServiceController = createController({
    ...sharedOptions,
    name: 'out_of_service_pods',
    operation: { component: 'node-lifecycle', name: 'RemovePod', cache: pods },
    sources: [
      source({
        cache: nodes,
        keysOf: (node) => podsBeingDeletedOutOfService(node, context),
        matters: (next, old) => mayRemovePodsOf(next) !== mayRemovePodsOf(old),
      }),
      source({ cache: pods, keysOf: keysIfBeingDeleted }),
    ],
    reconcile: (key, signal) => removePodOfOutOfServiceNode(key, context, signal),
  })
  const terminatedPodsController = createController({
    ...sharedOptions,
    name: 'finished_pods',
    sources: [
      source({
        cache: pods,
        keysOf: terminatedKeys,
        matters: (next, old) => terminatedKeys(next).length > terminatedKeys(old).length,
      }),
    ],
    reconcile: (_key, signal) => removeTerminatedPods(context, signal),
  })
  const lostNodeController = createLostNodeController(deps, context)
  const controllers = [
    nodeController,
    evictionController,
    orphanController,
    outOfServiceController,
    lostNodeController,
    ...(context.limits.terminatedPodsMax > 0 ? [terminatedPodsController] : []),
  ]
  for (const { queue } of controllers) metrics?.queues.add(queue)

  /** Subscribes before the controllers do, so that heartbeats are up to date when a reconcile runs. */
  function follow(): () => void {
    const stops = [
      nodes.subscribe({
        added: (node) => context.heartbeats.observeNode(node),
        updated: (node) => context.heartbeats.observeNode(node),
        deleted: (node) => handleDeletion(node),
      }),
      leases.subscribe({
        added: (lease) => context.heartbeats.observeLease(lease),
        updated: (lease) => context.heartbeats.observeLease(lease),
        deleted: ({ metadata: { name } }) => context.heartbeats.deleteLease(name),
      }),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }

  function handleDeletion(node: Readonly<Stored<Node>>): void {
    const { name } = node.metadata
    context.heartbeats.deleteNode(name)
    timers.clear(name)
    if (context.registeredUids.delete(name)) context.nodeEvents.record(nodeKind, node, nodeRemoved(node))
  }

  return {
    queues: controllers.map(({ queue }) => queue),
    async run(signal) {
      const stopFollowing = follow()
      const stopCollecting = nodeLifecycleMetrics?.collectFrom(context)
      const recorderAbort = new AbortController()
      const recorderRuns = eventRecorders.map((recorder) => recorder.run(recorderAbort.signal))
      try {
        await Promise.all(controllers.map((controller) => controller.run(signal)))
      } finally {
        stopFollowing()
        stopCollecting?.()
        timers.clearAll()
        recorderAbort.abort()
        await Promise.all(recorderRuns)
      }
    },
  }
}
