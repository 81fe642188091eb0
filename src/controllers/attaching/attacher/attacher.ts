// The attacher of one CSI driver (external-attacher), as two controllers: one publishes and unpublishes attachments, one
// removes the attacher's finalizer from volumes that are being deleted. Optionally, the attacher also publishes volumes again
// that find-unlisted.ts reports. With leader election, each term creates a new instance.
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { keyOfObject } from '../../../client/index.ts'
import { type CsiDriver, type DriverFacts, serializeCalls } from '../../../csi/index.ts'
import type { ControllerDeps } from '../../../runtime/controller-deps.ts'
import {
  createController,
  type LeaderElection,
  nameByDeletion,
  source,
  type WorkQueue,
} from '../../../runtime/index.ts'
import { attacherFinalizerOf } from '../../../volumes/attachment-names.ts'
import {
  type Attachment,
  attachmentsOfHandle,
  attachmentsOfVolume,
  attachmentsOnNode,
  indexAttachments,
  indexVolumes,
  isAttached,
  isBeingDeleted,
  isSingleNode,
  type Volume,
  volumeNamesOf,
} from '../attachment-index.ts'
import type { AttacherContext } from './attacher-context.ts'
import { volumeOf } from './attachment-volume.ts'
import { canListPublished, findUnlisted } from './find-unlisted.ts'
import { type AttacherOptions, attacherSettings } from './options.ts'
import { isAttachmentSettled, reconcileAttachment } from './reconcile-attachment.ts'
import { releaseVolume } from './release-volume.ts'
import { VolumeLocks } from './volume-locks.ts'

export interface AttacherDeps extends ControllerDeps {
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly options?: AttacherOptions
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
}

export interface Attacher {
  readonly queues: readonly WorkQueue[]
  /** Settles after the last running reconcile has finished. */
  run(signal: AbortSignal): Promise<void>
}

export function createAttacher(deps: AttacherDeps): Attacher {
  const { client, caches, clock, random, log, metrics, facts, options = {} } = deps
  const settings = attacherSettings(options)
  const context: AttacherContext = {
    driver: serializeCalls(deps.driver),
    facts,
    settings,
    finalizer: attacherFinalizerOf(facts.name),
    canPublish: facts.controller.has('PUBLISH_UNPUBLISH_VOLUME'),
    client,
    clock,
    election: deps.election,
    attachments: caches.of(volumeAttachmentKind),
    volumes: caches.of(persistentVolumeKind),
    csiNodes: caches.of(csiNodeKind),
    locks: new VolumeLocks(),
    unlistedNames: new Set(),
  }
  const { attachments, volumes, csiNodes } = context
  indexAttachments(attachments)
  indexVolumes(volumes)

  const isVolumeBeingDeleted = (name: string) => {
    const volume = volumes.get(name)
    return volume !== undefined && isBeingDeleted(volume)
  }
  // By default, use the queue names of external-attacher, because existing dashboards refer to them.
  const queueName = (upstreamName: string, suffix: string) =>
    options.prefixesQueueNames ? `${facts.name}-${suffix}` : upstreamName
  const { workers, backoff } = settings
  const sharedOptions = { clock, random, log, metrics, workers, backoff, workerBudget: deps.workerBudget }
  const attachmentController = createController({
    ...sharedOptions,
    name: queueName('csi-attacher-va', 'attachments'),
    laneOf: (key) => attachments.get(key)?.spec.nodeName,
    silentLanes: deps.silentNodes,
    operation: { component: 'attacher', name: nameByDeletion('Detach', 'Attach') },
    sources: [
      source({
        cache: attachments,
        keysOf: (attachment) => affectedAttachments(attachment, context),
        matters: isStateChanged,
      }),
      source({ cache: volumes, keysOf: (volume) => ownAttachmentsOf(volume, context), matters: isDeletionChanged }),
      source({
        cache: csiNodes,
        keysOf: ({ metadata: { name } }) =>
          attachmentsOnNode(attachments, name)
            .filter((attachment) => isOwn(attachment, context))
            .map(keyOfObject),
      }),
    ],
    isSettled: (key) => isAttachmentSettled(key, context),
    reconcile: (key, signal) =>
      reconcileAttachment(key, context, (attachmentName) => attachmentController.queue.add(attachmentName), signal),
  })
  const volumeController = createController({
    ...sharedOptions,
    name: queueName('csi-attacher-pv', 'attached-volumes'),
    operation: { component: 'attacher', name: 'Release' },
    sources: [
      source({
        cache: volumes,
        keysOf: (volume) => [keyOfObject(volume)],
        matters: isDeletionChanged,
        mayNeedReconcile: isBeingDeleted,
      }),
      source({
        cache: attachments,
        keysOf: volumeNamesOf,
        matters: () => false,
        mayNeedReconcile: (attachment) => volumeNamesOf(attachment).some(isVolumeBeingDeleted),
      }),
    ],
    reconcile: (key) => releaseVolume(key, context),
  })
  const controllers = [attachmentController, volumeController]
  for (const { queue } of controllers) metrics?.queues.add(queue)

  async function publishUnlisted(signal: AbortSignal): Promise<void> {
    for (const name of await findUnlisted(context, { entriesMax: options.listEntriesMax, isOwn }, signal)) {
      log.warn(
        { attachment: name },
        'the driver does not list the volume as published on the node; publishing it again',
      )
      context.unlistedNames.add(name)
      attachmentController.queue.add(name)
    }
  }

  async function syncWithDriver(intervalMs: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(intervalMs, signal).catch(() => {})
      if (signal.aborted) return
      await publishUnlisted(signal).catch((error) => {
        if (!signal.aborted)
          log.warn({ err: error }, 'cannot compare attachments with the volumes of the driver; retrying')
      })
    }
  }

  const { syncIntervalMs } = options
  const shouldSync = syncIntervalMs !== undefined && canListPublished(facts)
  return {
    queues: controllers.map(({ queue }) => queue),
    async run(signal) {
      const runs = controllers.map((controller) => controller.run(signal))
      await Promise.all(shouldSync ? [...runs, syncWithDriver(syncIntervalMs, signal)] : runs)
    },
  }
}

const isOwn = ({ spec }: Attachment, { facts, settings }: AttacherContext): boolean =>
  spec.attacher === facts.name && (settings.nodeName === undefined || spec.nodeName === settings.nodeName)

/** Returns the attachment and, for a single-node volume, its other attachments, which may wait until this one is deleted. */
function affectedAttachments(attachment: Attachment, context: AttacherContext): string[] {
  if (!isOwn(attachment, context)) return []
  const volume = volumeOf(attachment, context)
  if (!volume || !isSingleNode(volume.spec)) return [keyOfObject(attachment)]
  const ownAttachments = attachmentsOfHandle(volume.spec, context).filter((candidate) => isOwn(candidate, context))
  return [keyOfObject(attachment), ...ownAttachments.map(keyOfObject)]
}

const ownAttachmentsOf = ({ metadata }: Volume, context: AttacherContext): string[] =>
  attachmentsOfVolume(context.attachments, metadata.name)
    .filter((attachment) => isOwn(attachment, context))
    .map(keyOfObject)

/** Ignores other status changes: errors that the attacher saves must not reset its backoff. */
const isStateChanged = (next: Attachment, old: Attachment): boolean =>
  isBeingDeleted(next) !== isBeingDeleted(old) || isAttached(next) !== isAttached(old)

const isDeletionChanged = (next: Volume, old: Volume): boolean => isBeingDeleted(next) !== isBeingDeleted(old)
