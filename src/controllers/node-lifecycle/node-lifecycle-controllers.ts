// Nodes that fall silent are seen to, and so are the pods that nobody looks after any more.
//   a node           reconcile-node.ts        woken by itself, by a lease that comes, and when it has been silent too long
//   a tainted pod    evict-pod.ts             woken by its node's taints, by itself, and when its time is over
//   a missing node   remove-lost-pods.ts      woken by its pods and its end
//   a going pod      remove-lost-pods.ts      woken by itself, and by a node that is put out of service
//   finished pods    remove-finished-pods.ts  woken by pods that end
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
import { Alarms } from './alarms.ts'
import { type Limits, NODE_LEASES, type NodeLifecycleContext } from './context.ts'
import { EVICTION_COMPONENT, NODE_COMPONENT, removingNode } from './events.ts'
import { evictWhenDue } from './evict-pod.ts'
import { EvictionMemory } from './eviction-memory.ts'
import { Heartbeats } from './heartbeats.ts'
import type { NodeLifecycleMetrics } from './metrics.ts'
import { reconcileNode } from './reconcile-node.ts'
import { finishedKeys, indexFinishedPods, removeFinishedPods } from './remove-finished-pods.ts'
import { indexPods, mayForce, removePodOutOfService, removePodsOfMissingNode } from './remove-lost-pods.ts'
import {
  goingPodsOutOfService,
  ifGoing,
  ifUnderTaints,
  isBoundOtherwise,
  isJudgedOtherwise,
  isTaintedOtherwise,
  missingNodesOf,
  podsUnderTaints,
} from './waking.ts'

export interface NodeLifecycleDeps extends ControllerDeps {
  readonly options?: NodeLifecycleOptions
  readonly nodeLifecycleMetrics?: NodeLifecycleMetrics
  /** Run by whoever made it. Absent: the controllers have their own. */
  readonly events?: Pick<EventRecorder, 'record'>
}

export interface NodeLifecycleOptions {
  /** A node that has not been seen to report for this long is lost. Default 40 s. */
  readonly monitorGraceMs?: number
  /** The same for a node that has never written a status. Default 60 s. */
  readonly startupGraceMs?: number
  /** How long the pods of a node that is not there wait for it to appear. Default 40 s. */
  readonly quarantineMs?: number
  /** More pods than this that have ended are not kept; 0: all are. Default 12,500. */
  readonly finishedPodsMax?: number
}

export interface NodeLifecycleControllers {
  readonly queues: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

const LIMITS: Limits = {
  monitorGraceMs: 40_000,
  startupGraceMs: 60_000,
  quarantineMs: 40_000,
  finishedPodsMax: 12_500,
}

export function createNodeLifecycleControllers(deps: NodeLifecycleDeps): NodeLifecycleControllers {
  const { client, caches, clock, random, log, metrics, nodeLifecycleMetrics } = deps
  const own = deps.events
    ? []
    : [NODE_COMPONENT, EVICTION_COMPONENT].map((component) =>
        createEventRecorder({ client, clock, random, log, component }),
      )
  const alarms = new Alarms(clock)
  const context: NodeLifecycleContext = {
    client,
    clock,
    nodes: caches.of(nodeKind),
    leases: caches.of(leaseKind, { namespace: NODE_LEASES }),
    pods: caches.of(podKind),
    nodeEvents: deps.events ?? own[0]!,
    evictionEvents: deps.events ?? own[1]!,
    metrics: nodeLifecycleMetrics,
    heartbeats: new Heartbeats(clock),
    evictions: new EvictionMemory(),
    lookAfter: (name, ms) => alarms.set(name, ms, () => nodeController.queue.add(name)),
    missingSinceMs: new Map(),
    registered: new Map(),
    limits: { ...LIMITS, ...deps.options },
  }
  const { nodes, leases, pods } = context
  indexPods(pods)
  indexFinishedPods(pods)

  const common = { clock, random, log, metrics }
  const nodeController = createController({
    ...common,
    name: 'node_lifecycle_controller',
    sources: [
      source({ cache: nodes, keysOf: (node) => [keyOfObject(node)], matters: isJudgedOtherwise }),
      source({
        cache: leases,
        keysOf: ({ metadata: { name = '' } }) => [name],
        matters: () => false, // that it is renewed is noted; the node's alarm goes off later for it
      }),
    ],
    reconcile: (name) => reconcileNode(name, context),
  })
  const evictionController = createController({
    ...common,
    name: 'noexec_taint_pod',
    sources: [
      source({ cache: nodes, keysOf: (node) => podsUnderTaints(node, context), matters: isTaintedOtherwise }),
      source({ cache: pods, keysOf: (pod) => ifUnderTaints(pod, context), matters: isBoundOtherwise }),
    ],
    reconcile: (key) => evictWhenDue(key, context),
  })
  const orphanController = createController({
    ...common,
    name: 'orphaned_pods_nodes',
    sources: [
      source({ cache: nodes, keysOf: (node) => [keyOfObject(node)], matters: () => false }),
      source({ cache: pods, keysOf: (pod) => missingNodesOf(pod, context), matters: isBoundOtherwise }),
    ],
    reconcile: (nodeName, signal) => removePodsOfMissingNode(nodeName, context, signal),
  })
  const outOfServiceController = createController({
    ...common,
    name: 'out_of_service_pods',
    sources: [
      source({
        cache: nodes,
        keysOf: (node) => goingPodsOutOfService(node, context),
        matters: (next, old) => mayForce(next) !== mayForce(old),
      }),
      source({ cache: pods, keysOf: ifGoing }),
    ],
    reconcile: (key, signal) => removePodOutOfService(key, context, signal),
  })
  const finishedController = createController({
    ...common,
    name: 'finished_pods',
    sources: [
      source({
        cache: pods,
        keysOf: finishedKeys,
        matters: (next, old) => finishedKeys(next).length > finishedKeys(old).length,
      }),
    ],
    reconcile: (_key, signal) => removeFinishedPods(context, signal),
  })
  const controllers = [
    nodeController,
    evictionController,
    orphanController,
    outOfServiceController,
    ...(context.limits.finishedPodsMax > 0 ? [finishedController] : []),
  ]
  for (const { queue } of controllers) metrics?.queues.add(queue)

  /** Told before the controllers are: what they read must be what woke them. */
  function follow(): () => void {
    const stops = [
      nodes.subscribe({
        added: (node) => context.heartbeats.seeNode(node),
        updated: (node) => context.heartbeats.seeNode(node),
        deleted: (node) => forget(node),
      }),
      leases.subscribe({
        added: (lease) => context.heartbeats.seeLease(lease),
        updated: (lease) => context.heartbeats.seeLease(lease),
        deleted: ({ metadata: { name = '' } }) => context.heartbeats.forgetLease(name),
      }),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }

  function forget(node: Readonly<Node>): void {
    const { name = '' } = node.metadata
    context.heartbeats.forgetNode(name)
    alarms.clear(name)
    if (context.registered.delete(name)) context.nodeEvents.record(nodeKind, node, removingNode(node))
  }

  return {
    queues: controllers.map(({ queue }) => queue),
    async run(signal) {
      const stopFollowing = follow()
      const stopCounting = nodeLifecycleMetrics?.count(context)
      const telling = new AbortController()
      const told = own.map((recorder) => recorder.run(telling.signal))
      try {
        await Promise.all(controllers.map((one) => one.run(signal)))
      } finally {
        stopFollowing()
        stopCounting?.()
        alarms.clearAll()
        telling.abort()
        await Promise.all(told)
      }
    },
  }
}
