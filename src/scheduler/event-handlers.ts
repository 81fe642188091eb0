// Updates the cluster state and the queue from the watched objects, and emits a cluster event for every change: first the
// cluster state, then the plugins, then the queueing hints, so that no pod is evaluated on the state before the change.

import type { KubeObject, Stored } from '../api/kind.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../client/index.ts'
import type { ClusterState } from './cluster/cluster-state.ts'
import { isFinished, podInfo } from './cluster/pod-info.ts'
import type { ClusterEvent } from './framework/cluster-events.ts'
import type { SchedulerCaches } from './framework/scheduler-caches.ts'
import type { SchedulingQueue } from './queue/queue.ts'

export interface EventHandlerDeps {
  readonly caches: SchedulerCaches
  readonly cluster: ClusterState
  readonly queue: SchedulingQueue
  readonly emit: (event: ClusterEvent) => void
  /** Whether the pod names this scheduler. */
  readonly isOurs: (pod: Readonly<Pod>) => boolean
}

/** Call once the caches are synced. Returns a function that unsubscribes. */
export function addEventHandlers({ caches, cluster, queue, emit, isOurs }: EventHandlerDeps): () => void {
  // Claims come after the objects that plugins read when a claim changes, and pods last.
  const unsubscribes = [
    caches.nodes.subscribe({
      added(next) {
        cluster.setNode(next)
        emit({ on: 'node', next })
      },
      updated(next, old) {
        cluster.setNode(next)
        emit({ on: 'node', next, old })
      },
      deleted(old) {
        cluster.removeNode(old.metadata.name)
        emit({ on: 'node', old })
      },
    }),
    caches.csiNodes.subscribe(emitting((change) => ({ on: 'csiNode', ...change }))),
    caches.drivers.subscribe(emitting((change) => ({ on: 'csiDriver', ...change }))),
    caches.classes.subscribe(emitting((change) => ({ on: 'storageClass', ...change }))),
    caches.capacities?.subscribe(emitting((change) => ({ on: 'storageCapacity', ...change }))),
    caches.volumes.subscribe(emitting((change) => ({ on: 'volume', ...change }))),
    caches.claims.subscribe(emitting((change) => ({ on: 'claim', ...change }))),
    caches.attachments.subscribe(emitting((change) => ({ on: 'attachment', ...change }))),
    caches.pods.subscribe({
      added: (pod) => podChanged(pod, undefined),
      updated: (pod, old) => podChanged(pod, old),
      deleted(pod) {
        const key = keyOfObject(pod)
        queue.remove(key)
        leaveNode(key, () => cluster.removePod(key))
        emit({ on: 'podDeleted', key })
      },
    }),
  ]

  function emitting<T extends KubeObject>(
    toEvent: (change: { next?: Readonly<Stored<T>>; old?: Readonly<Stored<T>> }) => ClusterEvent,
  ) {
    return {
      added: (next: Readonly<Stored<T>>) => emit(toEvent({ next })),
      updated: (next: Readonly<Stored<T>>, old: Readonly<Stored<T>>) => emit(toEvent({ next, old })),
      deleted: (old: Readonly<Stored<T>>) => emit(toEvent({ old })),
    }
  }

  function podChanged(pod: Readonly<Pod>, old: Readonly<Pod> | undefined): void {
    const key = keyOfObject(pod)
    if (pod.spec?.nodeName || isFinished(pod)) queue.remove(key)
    leaveNode(key, () => cluster.setPod(pod))
    if (!isOurs(pod) || !needsNode(pod)) {
      if (pod.metadata.deletionTimestamp) queue.remove(key)
      return
    }
    if (old && queue.has(key) && hasSameSpec(pod, old)) queue.refresh(podInfo(pod))
    else queue.add(podInfo(pod))
  }

  function leaveNode(key: ObjectKey, leave: () => boolean): void {
    const node = cluster.nodeOf(key)
    const claims = node?.pods.get(key)?.claims.map((claim) => claim.key) ?? []
    if (leave() && node) emit({ on: 'podRemoved', nodeName: node.name, claims })
  }

  return () => {
    for (const unsubscribe of unsubscribes) unsubscribe?.()
  }
}

const needsNode = (pod: Readonly<Pod>): boolean =>
  !pod.spec?.nodeName && !pod.spec?.schedulingGates?.length && !pod.metadata.deletionTimestamp && !isFinished(pod)

/** Status and labels do not matter for scheduling. */
const hasSameSpec = (a: Readonly<Pod>, b: Readonly<Pod>): boolean =>
  a.metadata.uid === b.metadata.uid && (a.spec === b.spec || JSON.stringify(a.spec) === JSON.stringify(b.spec))
