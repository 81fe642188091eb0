// Keeps what the scheduler believes in step with the watched objects, and tells the queue of every change that could
// help a waiting pod: belief first, queue second, so that a pod is never tried on the state before the change.

import type { CSIDriver } from '../api/kinds/csi-driver/csi-driver-schema.ts'
import type { CSINode } from '../api/kinds/csi-node/csi-node-schema.ts'
import type { CSIStorageCapacity } from '../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { Node } from '../api/kinds/node/node-schema.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import type { VolumeAttachment } from '../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { keyOfObject, type ObjectKey } from '../client/index.ts'
import type { Cache } from '../runtime/index.ts'
import type { CapacityIndex } from './capacity/capacity-index.ts'
import type { Reservations } from './capacity/reservations.ts'
import type { ClusterState } from './cluster/cluster-state.ts'
import { type Changes, type HelpFacts, tellQueue } from './events-to-queue.ts'
import type { BindingWaits } from './plugins/volume-binding/binding-waits.ts'
import { type FollowFacts, followClaim, followDeletedVolume } from './plugins/volume-binding/follow-claims.ts'
import type { FreeVolumes } from './plugins/volume-binding/free-volumes.ts'
import type { VolumeCaches } from './plugins/volume-binding/pod-volumes.ts'
import type { VolumeLimits } from './plugins/volume-limits/volume-limits.ts'
import { isFinished, podFacts } from './pod-facts.ts'
import type { SchedulingQueue } from './queue/queue.ts'

export interface FollowDeps {
  readonly pods: Cache<Pod>
  readonly nodes: Cache<Node>
  readonly csiNodes: Cache<CSINode>
  readonly drivers: Cache<CSIDriver>
  readonly attachments: Cache<VolumeAttachment>
  /** Absent when capacity is not tracked. */
  readonly capacities: Cache<CSIStorageCapacity> | undefined
  readonly caches: VolumeCaches
  readonly cluster: ClusterState
  readonly queue: SchedulingQueue
  readonly help: HelpFacts
  readonly index: CapacityIndex
  readonly reservations: Reservations | undefined
  readonly follow: FollowFacts | undefined
  readonly waits: BindingWaits
  readonly free: FreeVolumes
  readonly volumeLimits: VolumeLimits
  readonly isOurs: (pod: Readonly<Pod>) => boolean
}

/** Call once the caches are complete; the returned function ends it. */
export function followCluster(deps: FollowDeps): () => void {
  const { cluster, queue, help, index, reservations, waits, free, volumeLimits } = deps
  const tell = <S extends keyof Changes>(on: S, change: Changes[S]) => tellQueue(queue, on, change, help)

  // Everything a claim's reservation is worked out from comes before the claims, and pods come last.
  const stops = [
    deps.nodes.subscribe({
      added(node) {
        cluster.setNode(node)
        tell('node', { next: node })
      },
      updated(node, old) {
        cluster.setNode(node)
        tell('node', { next: node, old })
      },
      deleted({ metadata: { name = '' } }) {
        cluster.removeNode(name)
        waits.nodeGone(name)
      },
    }),
    deps.csiNodes.subscribe({
      added: (next) => tell('csiNode', { next }),
      updated: (next, old) => tell('csiNode', { next, old }),
      deleted: (old) => tell('csiNode', { old }),
    }),
    deps.drivers.subscribe({
      updated: (next, old) => tell('driver', { next, old }),
      deleted: (old) => tell('driver', { old }),
    }),
    deps.caches.classes.subscribe({
      added: (next) => tell('storageClass', { next }),
      updated: (next, old) => tell('storageClass', { next, old }),
    }),
    deps.capacities?.subscribe({
      added: (object) => capacityChanged(object),
      updated: (object) => capacityChanged(object),
      deleted(object) {
        const key = keyOfObject(object)
        index.remove(key)
        reservations?.withdrawn(key)
      },
    }),
    deps.caches.volumes.subscribe({
      added(volume) {
        free.put(volume)
        waits.volumeChanged(volume)
        tell('volume', { next: volume })
      },
      updated(volume, old) {
        free.put(volume)
        waits.volumeChanged(old) // whoever it was for, and is not any more
        waits.volumeChanged(volume)
        tell('volume', { next: volume, old })
      },
      deleted(volume) {
        free.remove(volume.metadata.name ?? '')
        waits.volumeChanged(volume)
        if (deps.follow) followDeletedVolume(volume, deps.follow)
      },
    }),
    deps.caches.claims.subscribe({
      added: (claim) => claimChanged({ next: claim }),
      updated: (next, old) => claimChanged({ next, old }),
      deleted(claim) {
        const key = keyOfObject(claim)
        reservations?.orphaned(key)
        waits.claimChanged(key)
      },
    }),
    deps.attachments.subscribe({
      added: ({ spec }) => recount(spec.nodeName),
      deleted(old) {
        recount(old.spec.nodeName)
        tell('detached', { old })
      },
    }),
    deps.pods.subscribe({
      added: (pod) => podChanged(pod, undefined),
      updated: (pod, old) => podChanged(pod, old),
      deleted(pod) {
        const key = keyOfObject(pod)
        queue.remove(key)
        leaveNode(key, () => cluster.removePod(key))
        waits.podGone(key)
      },
    }),
  ]

  function capacityChanged(object: Readonly<CSIStorageCapacity>): void {
    const { before, now } = index.put(object)
    reservations?.reported(now, before)
    tell('capacity', { now, before })
  }

  function claimChanged(change: Changes['claim']): void {
    const { next, old } = change
    const key = keyOfObject(next)
    if (deps.follow) followClaim(next, old, deps.follow)
    if (next.spec?.volumeName !== old?.spec?.volumeName) {
      for (const pod of cluster.podsUsing(key)) {
        const node = cluster.nodeOf(pod)
        if (node) volumeLimits.recount(node)
      }
    }
    waits.claimChanged(key)
    tell('claim', change)
  }

  function recount(nodeName: string): void {
    const node = cluster.node(nodeName)
    if (node) volumeLimits.recount(node)
  }

  function podChanged(pod: Readonly<Pod>, old: Readonly<Pod> | undefined): void {
    const key = keyOfObject(pod)
    if (pod.spec?.nodeName || isFinished(pod)) queue.remove(key)
    leaveNode(key, () => cluster.setPod(pod))
    if (!deps.isOurs(pod) || !wantsNode(pod)) {
      if (pod.metadata.deletionTimestamp) queue.remove(key)
      return
    }
    if (old && queue.has(key) && wantsTheSame(pod, old)) queue.refresh(podFacts(pod))
    else queue.add(podFacts(pod))
  }

  function leaveNode(key: ObjectKey, leave: () => boolean): void {
    const node = cluster.nodeOf(key)
    const claims = node?.pods.get(key)?.claims.map((claim) => claim.key) ?? []
    if (leave() && node) tell('podLeft', { nodeName: node.name, claims })
  }

  return () => {
    for (const stop of stops) stop?.()
  }
}

const wantsNode = (pod: Readonly<Pod>): boolean =>
  !pod.spec?.nodeName && !pod.spec?.schedulingGates?.length && !pod.metadata.deletionTimestamp && !isFinished(pod)

/** Its status and labels may change as they like: what is wanted of a node is in the spec. */
const wantsTheSame = (a: Readonly<Pod>, b: Readonly<Pod>): boolean =>
  a.metadata.uid === b.metadata.uid && (a.spec === b.spec || JSON.stringify(a.spec) === JSON.stringify(b.spec))
