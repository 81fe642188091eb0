// The attach-detach controllers: one creates and deletes the VolumeAttachments of each volume (reconcile-volume.ts), one
// updates status.volumesAttached of each node (report-attached.ts). An attacher per driver (attacher/) publishes volumes.

import { type JsonValue, jsonEquals } from '../../api/json-value.ts'
import type { Stored } from '../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  createController,
  createEventRecorder,
  type EventRecorder,
  source,
  type WorkQueue,
} from '../../runtime/index.ts'
import { attachedVolumeNameOf } from '../../volumes/attachment-names.ts'
import {
  type Attachment,
  attachmentsOfVolume,
  attachmentsOnNode,
  indexAttachments,
  indexVolumes,
  isAttached,
  isBeingDeleted,
  type Volume,
  volumeNamesOf,
  volumesOfDriver,
} from './attachment-index.ts'
import type { AttachingContext } from './context.ts'
import { COMPONENT } from './events.ts'
import type { AttachingMetrics } from './metrics.ts'
import { isMounted, isNodeStateChanged, isOutOfService, isReady } from './node-state.ts'
import { claimsOfAssignedPod, needsVolumes } from './pod-use.ts'
import { PODS_BY_CLAIM } from './read-volume.ts'
import { reconcileVolume } from './reconcile-volume.ts'
import { haveSameNames, reportAttached } from './report-attached.ts'
import { VolumeStates } from './volume-state.ts'

export interface AttachingDeps extends ControllerDeps {
  readonly options?: AttachingOptions
  readonly attachingMetrics?: AttachingMetrics
  /** The recorder of events, which the caller runs. By default the controllers create and run one. */
  readonly events?: Pick<EventRecorder, 'record'>
}

interface AttachingOptions {
  /**
   * Time after which an unneeded volume is detached from a node that was deleted, even if the volume may still be
   * mounted. Infinity disables it. Volumes are force-detached from an existing node only if it is out of service.
   * Default 6 minutes.
   */
  readonly forceDetachAfterMs?: number
}

export interface AttachingControllers {
  readonly queues: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

const FORCE_DETACH_AFTER_MS = 360_000
/** Reconciles are short, and concurrent ones share the group commits of the store. */
const WORKERS = 64

export function createAttachingControllers(deps: AttachingDeps): AttachingControllers {
  const { client, caches, clock, random, log, metrics, attachingMetrics, options = {} } = deps
  const eventRecorder = deps.events
    ? undefined
    : createEventRecorder({ client, clock, random, log, component: COMPONENT })
  const context: AttachingContext = {
    client,
    clock,
    events: deps.events ?? eventRecorder!,
    metrics: attachingMetrics,
    pods: caches.of(podKind),
    claims: caches.of(persistentVolumeClaimKind),
    volumes: caches.of(persistentVolumeKind),
    attachments: caches.of(volumeAttachmentKind),
    nodes: caches.of(nodeKind),
    csiNodes: caches.of(csiNodeKind),
    drivers: caches.of(csiDriverKind),
    states: new VolumeStates(),
    detachingAttachments: new WeakSet(),
    forceDetachAfterMs: options.forceDetachAfterMs ?? FORCE_DETACH_AFTER_MS,
  }
  const { pods, claims, volumes, attachments, nodes, csiNodes, drivers, states } = context
  pods.addIndex(PODS_BY_CLAIM, claimsOfAssignedPod)
  indexVolumes(volumes)
  indexAttachments(attachments)

  /**
   * Whether the volume is or was attached, or a pod on a node uses its claim. A new volume needs no reconcile: a pod or an
   * attachment that appears later enqueues it.
   */
  const mayNeedReconcile = (name: string): boolean => {
    if (volumeController.queue.has(name) || states.has(name)) return true
    const { claimRef } = volumes.get(name)?.spec ?? {}
    return (
      attachmentsOfVolume(attachments, name).length > 0 ||
      (claimRef !== undefined && pods.byIndex(PODS_BY_CLAIM, `${claimRef.namespace}/${claimRef.name}`).length > 0)
    )
  }

  const sharedOptions = { clock, random, log, metrics, workers: WORKERS }
  const volumeController = createController({
    ...sharedOptions,
    name: 'volume-attaching',
    operation: { component: 'attaching', name: 'Attach' },
    sources: [
      source({
        cache: volumes,
        keysOf: (volume) => [keyOfObject(volume)].filter(mayNeedReconcile),
        matters: isVolumeChanged,
      }),
      source({
        cache: attachments,
        keysOf: (attachment) => affectedVolumes(attachment, context),
        matters: isAttachmentChanged,
      }),
      source({
        cache: claims,
        keysOf: (claim) => volumeNamesOfClaim(claim).filter(mayNeedReconcile),
        matters: isBindingChanged,
      }),
      source({ cache: pods, keysOf: (pod) => volumesOfPod(pod, context), matters: isUseChanged }),
      source({ cache: nodes, keysOf: (node) => volumesAffectedByNode(node, context), matters: isNodeStateChanged }),
      source({ cache: csiNodes, keysOf: ({ metadata: { name } }) => states.volumesWaitingFor(capacityOfNode(name)) }),
      source({
        cache: drivers,
        keysOf: ({ metadata: { name } }) => volumesOfDriver(volumes, name).map(keyOfObject),
        matters: (next, old) => next.spec.attachRequired !== old.spec.attachRequired,
      }),
    ],
    reconcile: (key, signal) => reconcileVolume(key, context, signal),
  })
  const nodeController = createController({
    ...sharedOptions,
    name: 'node-attached-volumes',
    operation: { component: 'attaching', name: 'ReportAttached', cache: nodes },
    sources: [
      source({ cache: attachments, keysOf: ({ spec }) => [spec.nodeName], matters: isAttachedChanged }),
      source({ cache: nodes, keysOf: (node) => [keyOfObject(node)], matters: isVolumesAttachedChanged }),
      source({
        cache: volumes,
        keysOf: ({ metadata: { name } }) =>
          attachmentsOfVolume(attachments, name).map((attachment) => attachment.spec.nodeName),
        matters: () => false, // volumeHandle is immutable: only creation and deletion matter
      }),
    ],
    reconcile: (key) => reportAttached(key, context),
  })
  const controllers = [volumeController, nodeController]
  for (const { queue } of controllers) metrics?.queues.add(queue)

  return {
    queues: controllers.map(({ queue }) => queue),
    async run(signal) {
      const stopCollecting = attachingMetrics?.collectFrom(context)
      try {
        await Promise.all([...controllers.map((controller) => controller.run(signal)), eventRecorder?.run(signal)])
      } finally {
        stopCollecting?.()
      }
    },
  }
}

const capacityOfNode = (nodeName: string) => ({ kind: 'capacity', nodeName }) as const

const affectedVolumes = (attachment: Attachment, { states }: AttachingContext): ObjectKey[] => [
  ...volumeNamesOf(attachment),
  ...states.volumesWaitingFor(capacityOfNode(attachment.spec.nodeName)),
]

const volumeNamesOfClaim = ({ spec }: Readonly<PersistentVolumeClaim>): ObjectKey[] =>
  spec?.volumeName ? [spec.volumeName] : []

const volumesOfPod = (pod: Readonly<Pod>, { claims }: AttachingContext): ObjectKey[] =>
  claimsOfAssignedPod(pod).flatMap((key) => {
    const claim = claims.get(key)
    return claim ? volumeNamesOfClaim(claim) : []
  })

/**
 * Returns the waiting volumes that a change to the node affects: all if it is not ready, only unmounted ones if it is
 * ready. For an out-of-service node, also all attached volumes.
 */
function volumesAffectedByNode(
  node: Readonly<Stored<Node>>,
  { states, volumes, attachments }: AttachingContext,
): ObjectKey[] {
  const { name: nodeName } = node.metadata
  const waitingVolumes = states.volumesWaitingFor({ kind: 'node', nodeName })
  if (isOutOfService(node))
    return [...waitingVolumes, ...attachmentsOnNode(attachments, nodeName).flatMap(volumeNamesOf)]
  if (!isReady(node)) return [...waitingVolumes]
  return waitingVolumes.filter((name) => {
    const { csi } = volumes.get(name)?.spec ?? {}
    return !csi || !isMounted(node, attachedVolumeNameOf({ driver: csi.driver, handle: csi.volumeHandle }))
  })
}

const isVolumeChanged = (next: Volume, old: Volume): boolean =>
  next.spec?.claimRef?.uid !== old.spec?.claimRef?.uid ||
  next.spec?.accessModes?.join() !== old.spec?.accessModes?.join()

const isBindingChanged = (next: Readonly<PersistentVolumeClaim>, old: Readonly<PersistentVolumeClaim>): boolean =>
  next.spec?.volumeName !== old.spec?.volumeName || next.status?.phase !== old.status?.phase

const isUseChanged = (next: Readonly<Pod>, old: Readonly<Pod>): boolean =>
  next.spec?.nodeName !== old.spec?.nodeName || useOf(next) !== useOf(old)

const useOf = (pod: Readonly<Pod>): string => `${needsVolumes(pod, false)} ${needsVolumes(pod, true)}`

/** Ignores the finalizer and the annotation with which the attacher begins, and what else only the attacher reads. */
const isAttachmentChanged = (next: Attachment, old: Attachment): boolean =>
  isBeingDeleted(next) !== isBeingDeleted(old) ||
  !jsonEquals(next.spec as unknown as JsonValue, old.spec as unknown as JsonValue) ||
  !jsonEquals(next.status as JsonValue | undefined, old.status as JsonValue | undefined)

const isAttachedChanged = (next: Attachment, old: Attachment): boolean =>
  isAttached(next) !== isAttached(old) || isBeingDeleted(next) !== isBeingDeleted(old)

const isVolumesAttachedChanged = (next: Readonly<Node>, old: Readonly<Node>): boolean =>
  !haveSameNames(next.status?.volumesAttached ?? [], old.status?.volumesAttached ?? [])
