// Updates the cluster state and the queue from the watched objects, and emits cluster events. The cluster state is updated
// before the event of a change is emitted.

import type { KubeObject, Stored } from '../api/kind.ts'
import { hasTerminated } from '../api/kinds/pod/has-terminated.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { keyOfObject, type ObjectKey } from '../client/index.ts'
import { isRetryRequested } from '../runtime/operations/retry-request.ts'
import type { ClusterState } from './cluster/cluster-state.ts'
import { podInfoOf } from './cluster/pod-info.ts'
import type { ClusterEvent } from './framework/cluster-events.ts'
import type { SchedulerCaches } from './framework/scheduler-caches.ts'
import type { SchedulingQueue } from './queue/queue.ts'

export interface EventHandlerDeps {
  readonly caches: SchedulerCaches
  readonly cluster: ClusterState
  readonly queue: SchedulingQueue
  readonly emit: (event: ClusterEvent) => void
  /** Whether the pod names this scheduler. */
  readonly isResponsibleFor: (pod: Readonly<Pod>) => boolean
}

/** Adds the handlers; the caches must be synced. Returns a function that removes them. */
export function addEventHandlers({ caches, cluster, queue, emit, isResponsibleFor }: EventHandlerDeps): () => void {
  // The initial objects arrive in this order: claims after the objects that plugins read for a claim, pods last.
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
    caches.csiNodes.subscribe(emitOnChange((change) => ({ on: 'csiNode', ...change }))),
    caches.drivers.subscribe(emitOnChange((change) => ({ on: 'csiDriver', ...change }))),
    caches.classes.subscribe(emitOnChange((change) => ({ on: 'storageClass', ...change }))),
    caches.capacities?.subscribe(emitOnChange((change) => ({ on: 'storageCapacity', ...change }))),
    caches.volumes.subscribe(emitOnChange((change) => ({ on: 'volume', ...change }))),
    caches.claims.subscribe(emitOnChange((change) => ({ on: 'claim', ...change }))),
    caches.attachments.subscribe(emitOnChange((change) => ({ on: 'attachment', ...change }))),
    caches.pods.subscribe({
      added: (pod) => updatePod(pod, undefined),
      updated: (pod, old) => updatePod(pod, old),
      deleted(pod) {
        const key = keyOfObject(pod)
        queue.remove(key)
        updateNodeOf(key, () => cluster.removePod(key))
        updateNomination(pod, false)
        emit({ on: 'podDeleted', key })
      },
    }),
  ]

  function emitOnChange<T extends KubeObject>(
    toEvent: (change: { next?: Readonly<Stored<T>>; old?: Readonly<Stored<T>> }) => ClusterEvent,
  ) {
    return {
      added: (next: Readonly<Stored<T>>) => emit(toEvent({ next })),
      updated: (next: Readonly<Stored<T>>, old: Readonly<Stored<T>>) => emit(toEvent({ next, old })),
      deleted: (old: Readonly<Stored<T>>) => emit(toEvent({ old })),
    }
  }

  function updatePod(pod: Readonly<Pod>, old: Readonly<Pod> | undefined): void {
    const key = keyOfObject(pod)
    if (pod.spec?.nodeName || hasTerminated(pod)) queue.remove(key)
    updateNodeOf(key, () => cluster.setPod(pod))
    updateNomination(pod, needsNode(pod))
    if (!isResponsibleFor(pod) || !needsNode(pod)) {
      if (pod.metadata.deletionTimestamp) queue.remove(key)
      return
    }
    if (old && queue.has(key) && hasSameSpec(pod, old)) queue.refresh(podInfoOf(pod))
    else queue.add(podInfoOf(pod))
    if (old && isRetryRequested(pod, old)) queue.retryNow(key)
  }

  /** Emits podRemoved if the pod no longer needs space on a nominated node, as if it had left that node. */
  function updateNomination(pod: Readonly<Pod>, isPending: boolean): void {
    const { nominatedPods } = cluster
    if (nominatedPods.isEmpty && !pod.status?.nominatedNodeName) return
    const info = podInfoOf(pod)
    const nodeName = isPending ? nominatedPods.setPod(info) : nominatedPods.removePod(info.key)
    if (nodeName === undefined || nodeName === pod.spec?.nodeName) return
    emit({ on: 'podRemoved', nodeName, claims: info.claims.map((claim) => claim.key) })
  }

  /** Applies `update`, and emits podRemoved if it returns true: the pod left its node. */
  function updateNodeOf(key: ObjectKey, update: () => boolean): void {
    const node = cluster.nodeOf(key)
    const claims = node?.pods.get(key)?.claims.map((claim) => claim.key) ?? []
    if (update() && node) emit({ on: 'podRemoved', nodeName: node.name, claims })
  }

  return () => {
    for (const unsubscribe of unsubscribes) unsubscribe?.()
  }
}

const needsNode = (pod: Readonly<Pod>): boolean =>
  !pod.spec?.nodeName && !pod.spec?.schedulingGates?.length && !pod.metadata.deletionTimestamp && !hasTerminated(pod)

/** Whether the uid and the spec are equal. Changes to the status and labels do not affect scheduling. */
const hasSameSpec = (a: Readonly<Pod>, b: Readonly<Pod>): boolean =>
  a.metadata.uid === b.metadata.uid && (a.spec === b.spec || JSON.stringify(a.spec) === JSON.stringify(b.spec))
