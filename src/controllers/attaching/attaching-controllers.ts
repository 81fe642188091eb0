// Volumes come to the nodes of the pods that need them, and leave when nobody there does: one controller for volumes,
// one for what nodes are told. Driver by driver, an attacher (attacher/) does what the attachments say.
//   a volume   by itself, its attachments, its claim, the pods of the claim, its driver, and what it waits for: a node
//              that answers again, unmounts or comes, a place on a full one
//   a node     by its attachments, and by its own list
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
import { Memory } from './memory.ts'
import type { AttachingMetrics } from './metrics.ts'
import { isAnotherNodeState, isMounted, isOutOfService, isReady } from './node-facts.ts'
import { claimsAtNode, needsVolumes } from './pod-use.ts'
import { PODS_BY_CLAIM } from './read-volume.ts'
import { reconcileVolume } from './reconcile-volume.ts'
import { reportAttached } from './report-attached.ts'

export interface AttachingDeps extends ControllerDeps {
  readonly options?: AttachingOptions
  readonly attachingMetrics?: AttachingMetrics
  /** Run by whoever made it. Absent: the controllers have one of their own. */
  readonly events?: Pick<EventRecorder, 'record'>
}

export interface AttachingOptions {
  /**
   * A volume that nobody needs, on a node that is lost, is detached after this long, whether or not it is still mounted
   * there. Infinity: never. Default 6 minutes.
   */
  readonly forceDetachAfterMs?: number
}

export interface AttachingControllers {
  readonly queues: readonly WorkQueue[]
  run(signal: AbortSignal): Promise<void>
}

const FORCE_DETACH_AFTER_MS = 360_000
/** An attachment is a write and a look: many at once keep the store's group commits full. */
const WORKERS = 64

export function createAttachingControllers(deps: AttachingDeps): AttachingControllers {
  const { client, caches, clock, random, log, metrics, attachingMetrics, options = {} } = deps
  const ownEvents = deps.events ? undefined : createEventRecorder({ client, clock, random, log, component: COMPONENT })
  const context: AttachingContext = {
    client,
    clock,
    events: deps.events ?? ownEvents!,
    metrics: attachingMetrics,
    pods: caches.of(podKind),
    claims: caches.of(persistentVolumeClaimKind),
    volumes: caches.of(persistentVolumeKind),
    attachments: caches.of(volumeAttachmentKind),
    nodes: caches.of(nodeKind),
    csiNodes: caches.of(csiNodeKind),
    drivers: caches.of(csiDriverKind),
    memory: new Memory(),
    leaving: new WeakSet(),
    forceDetachAfterMs: options.forceDetachAfterMs ?? FORCE_DETACH_AFTER_MS,
  }
  const { pods, claims, volumes, attachments, nodes, csiNodes, drivers, memory } = context
  pods.addIndex(PODS_BY_CLAIM, claimsAtNode)
  indexVolumes(volumes)
  indexAttachments(attachments)

  const common = { clock, random, log, metrics, workers: WORKERS }
  const volumeController = createController({
    ...common,
    name: 'volume-attaching',
    sources: [
      source({ cache: volumes, keysOf: (volume) => [keyOfObject(volume)], matters: isAnotherOwner }),
      source({ cache: attachments, keysOf: (attachment) => volumesConcernedBy(attachment, context) }),
      source({ cache: claims, keysOf: volumeNamesOfClaim, matters: isBoundOtherwise }),
      source({ cache: pods, keysOf: (pod) => volumesOfPod(pod, context), matters: isUsedOtherwise }),
      source({ cache: nodes, keysOf: (node) => volumesConcernedByNode(node, context), matters: isAnotherNodeState }),
      source({ cache: csiNodes, keysOf: ({ metadata: { name = '' } }) => memory.waitingFor(roomOn(name)) }),
      source({
        cache: drivers,
        keysOf: ({ metadata: { name = '' } }) => volumesOfDriver(volumes, name).map(keyOfObject),
        matters: (next, old) => next.spec.attachRequired !== old.spec.attachRequired,
      }),
    ],
    reconcile: (key, signal) => reconcileVolume(key, context, signal),
  })
  const nodeController = createController({
    ...common,
    name: 'node-attached-volumes',
    sources: [
      source({ cache: attachments, keysOf: ({ spec }) => [spec.nodeName], matters: isReportedOtherwise }),
      source({ cache: nodes, keysOf: (node) => [keyOfObject(node)], matters: isAnotherReport }),
      source({
        cache: volumes,
        keysOf: ({ metadata: { name = '' } }) =>
          attachmentsOfVolume(attachments, name).map((attachment) => attachment.spec.nodeName),
        matters: () => false, // a handle never changes; only its coming and going matters
      }),
    ],
    reconcile: (key) => reportAttached(key, context),
  })
  const controllers = [volumeController, nodeController]
  for (const { queue } of controllers) metrics?.queues.add(queue)

  return {
    queues: controllers.map(({ queue }) => queue),
    async run(signal) {
      const stopCounting = attachingMetrics?.count(context)
      try {
        await Promise.all([...controllers.map((one) => one.run(signal)), ownEvents?.run(signal)])
      } finally {
        stopCounting?.()
      }
    },
  }
}

const roomOn = (nodeName: string) => ({ what: 'room', nodeName }) as const

const volumesConcernedBy = (attachment: Attachment, { memory }: AttachingContext): ObjectKey[] => [
  ...volumeNamesOf(attachment),
  ...memory.waitingFor(roomOn(attachment.spec.nodeName)),
]

const volumeNamesOfClaim = ({ spec }: Readonly<PersistentVolumeClaim>): ObjectKey[] =>
  spec?.volumeName ? [spec.volumeName] : []

const volumesOfPod = (pod: Readonly<Pod>, { claims }: AttachingContext): ObjectKey[] =>
  claimsAtNode(pod).flatMap((key) => {
    const claim = claims.get(key)
    return claim ? volumeNamesOfClaim(claim) : []
  })

/** A node that answers and still has a volume mounted has no news for it; one out of service has for all it holds. */
function volumesConcernedByNode(node: Readonly<Node>, { memory, volumes, attachments }: AttachingContext): ObjectKey[] {
  const { name: nodeName = '' } = node.metadata
  const waiting = memory.waitingFor({ what: 'node', nodeName })
  if (isOutOfService(node)) return [...waiting, ...attachmentsOnNode(attachments, nodeName).flatMap(volumeNamesOf)]
  if (!isReady(node)) return [...waiting]
  return waiting.filter((name) => {
    const { csi } = volumes.get(name)?.spec ?? {}
    return !csi || !isMounted(node, attachedVolumeNameOf({ driver: csi.driver, handle: csi.volumeHandle }))
  })
}

const isAnotherOwner = (next: Volume, old: Volume): boolean =>
  next.spec?.claimRef?.uid !== old.spec?.claimRef?.uid ||
  next.spec?.accessModes?.join() !== old.spec?.accessModes?.join()

const isBoundOtherwise = (next: Readonly<PersistentVolumeClaim>, old: Readonly<PersistentVolumeClaim>): boolean =>
  next.spec?.volumeName !== old.spec?.volumeName || next.status?.phase !== old.status?.phase

const isUsedOtherwise = (next: Readonly<Pod>, old: Readonly<Pod>): boolean =>
  next.spec?.nodeName !== old.spec?.nodeName || useOf(next) !== useOf(old)

const useOf = (pod: Readonly<Pod>): string => `${needsVolumes(pod, false)} ${needsVolumes(pod, true)}`

const isReportedOtherwise = (next: Attachment, old: Attachment): boolean =>
  isAttached(next) !== isAttached(old) || isBeingDeleted(next) !== isBeingDeleted(old)

const isAnotherReport = (next: Readonly<Node>, old: Readonly<Node>): boolean =>
  JSON.stringify(next.status?.volumesAttached) !== JSON.stringify(old.status?.volumesAttached)
