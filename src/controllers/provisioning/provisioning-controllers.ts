// The controllers of one Provisioner: one for claims that request a volume and one for released volumes. They run in the
// control plane or in a separate process with any Kubernetes API server. With leader election, they are created for each term,
// because their state in memory is valid for one term only.
// plan-claim.ts and plan-volume.ts plan; reconcile-claim.ts and reconcile-volume.ts apply the plans.

import { jsonEquals } from '../../api/json-value.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import { randomUuid } from '../../base/identifiers.ts'
import { groupCommits, keyOfObject, type ObjectKey } from '../../client/index.ts'
import { type Backoff, backoffMs } from '../../runtime/backoff.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import {
  createController,
  createEventRecorder,
  createSaver,
  type EventRecorder,
  type LeaderElection,
  source,
  type WorkQueue,
} from '../../runtime/index.ts'
import { DELETION_REQUESTED_ANNOTATION } from '../../volumes/deletion-requested.ts'
import { type Claim, claimKeysOf, VOLUMES_BY_CLAIM, type Volume } from '../../volumes/matching.ts'
import { PROVISIONER, PROVISIONER_BETA, SELECTED_NODE } from '../../volumes/names.ts'
import { possibleNodeNamesOf } from '../../volumes/node-affinity.ts'
import { INTENT_PREFIX, intentOf } from '../../volumes/provisioning-intent.ts'
import type { RunningProvisioners } from '../binding/index.ts'
import { Attempts } from './attempts.ts'
import type { ProvisioningContext } from './context.ts'
import { hasIntent } from './intent.ts'
import { createIntentJournal, type IntentJournal } from './intent-journal.ts'
import type { ProvisioningMetrics } from './metrics.ts'
import { type ProvisioningOptions, settingsOf } from './options.ts'
import { planVolume } from './plan-volume.ts'
import type { Provisioner } from './provisioner.ts'
import { isClaimSettled, reconcileClaim } from './reconcile-claim.ts'
import { BY_VOLUME, reconcileVolume } from './reconcile-volume.ts'
import { isAssigned } from './select-claim.ts'

export interface ProvisioningDeps extends ControllerDeps {
  readonly provisioner: Provisioner
  readonly options?: ProvisioningOptions
  readonly provisioningMetrics?: ProvisioningMetrics
  /** An event recorder that the caller runs. Default: a recorder that the controllers run. */
  readonly events?: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  /** Whether to send the commits of a burst together, because each one is a request over HTTP. Default false. */
  readonly groupsCommits?: boolean
  /** The list that a binder in this process reads. The provisioner is in it while its controllers run. */
  readonly runningProvisioners?: RunningProvisioners
}

export interface ProvisioningControllers {
  readonly queues: readonly WorkQueue[]
  /** Settles when the last reconcile has ended. */
  run(signal: AbortSignal): Promise<void>
}

/** Delay between attempts to open the journal. */
const OPEN_BACKOFF: Backoff = { baseMs: 500, maxMs: 10_000 }
const BY_CLASS = 'provisioning: class'

export function createProvisioningControllers(deps: ProvisioningDeps): ProvisioningControllers {
  const { client, caches, clock, random, log, metrics, provisioner, provisioningMetrics, election } = deps
  const settings = settingsOf(deps.options ?? {})
  const ownRecorder = deps.events
    ? undefined
    : createEventRecorder({ client, clock, random, log, component: provisioner.name })
  const [claims, volumes] = [caches.of(persistentVolumeClaimKind), caches.of(persistentVolumeKind)]
  const [classes, attachments] = [caches.of(storageClassKind), caches.of(volumeAttachmentKind)]
  claims.addIndex(BY_CLASS, classesOf)
  volumes.addIndex(VOLUMES_BY_CLAIM, claimKeysOf)
  attachments.addIndex(BY_VOLUME, volumesOf)
  const { intentLease } = settings
  const writer = deps.groupsCommits ? groupCommits(client) : client
  const context: ProvisioningContext = {
    provisioner,
    settings,
    intentFinalizer: intentOf(provisioner.name, provisioner.instance),
    journal: intentLease && createIntentJournal({ client, clock, log, ref: intentLease, identity: randomUuid(random) }),
    client,
    writer,
    // Saved volumes are not added to the cache: an attempt waits for the watch event of its volume (attempts.ts), and a
    // deleted volume needs no reconcile.
    trySave: createSaver({ client: writer, election, caches: [claims] }).trySave,
    clock,
    random,
    log,
    events: deps.events ?? ownRecorder!,
    metrics: provisioningMetrics,
    election,
    claims,
    volumes,
    classes,
    attachments,
    attempts: new Attempts(),
    expectedIntents: new Map(),
    claimsByTakenName: new Map(),
  }

  const { attempts, journal } = context
  const concernsClaim = (claim: Claim): boolean =>
    isAssigned(claim, provisioner.name) || hasIntent(claim, context) || attempts.has(keyOfObject(claim))
  const isCached = (claim: Claim): boolean => claims.get(keyOfObject(claim))?.metadata.uid === claim.metadata.uid
  const concernsVolume = (volume: Volume): boolean =>
    claimsOf(volume).some((key) => {
      const claim = claims.get(key)
      return claim ? concernsClaim(claim) : attempts.has(key)
    })
  const needsWork = (volume: Volume): boolean =>
    planVolume(volume, provisioner, settings.volumeFinalizer).do !== 'nothing'

  /** The node or zone of the volume, if it has one. */
  const laneOfVolume = (key: ObjectKey): string | undefined => {
    const volume = volumes.get(key)
    return volume && possibleNodeNamesOf(volume)[0]
  }

  // A provisioner that runs alone has the queue names of external-provisioner.
  const instance = provisioner.instance === undefined ? '' : `-${provisioner.instance}`
  const queueName = (name: string) => (settings.prefixesQueueNames ? `${provisioner.name}${instance}-${name}` : name)
  const { workers, backoff } = settings
  const common = { clock, random, log, metrics, workers, backoff, workerBudget: deps.workerBudget }
  const claimController = createController({
    ...common,
    name: queueName('claims'),
    operation: {
      component: 'provisioner',
      name: 'Provision',
      objectOf(key) {
        const [name = '', deletedUid] = key.split('#')
        const claim = claims.get(name)
        return deletedUid === undefined || claim?.metadata.uid === deletedUid ? claim : undefined
      },
    },
    sources: [
      source({
        cache: claims,
        keysOf: (claim) => [keyOfObject(claim)],
        matters: isRelevantClaimChange,
        mayNeedReconcile: concernsClaim,
      }),
      source({
        cache: classes,
        keysOf: ({ metadata: { name } }) => [
          ...claims.byIndex(BY_CLASS, name).map(keyOfObject),
          ...attempts.keysOf(({ claim }) => claimClassName(claim) === name && !isCached(claim)),
        ],
      }),
      source({ cache: volumes, keysOf: claimsOf, matters: hasNewOwner, mayNeedReconcile: concernsVolume }),
      source({
        cache: volumes,
        keysOf: ({ metadata: { name } }) => [context.claimsByTakenName.get(name)].filter((key) => key !== undefined),
        matters: hasNewOwner,
      }),
    ],
    onRetry: (key) => context.attempts.endWaits(key.split('#')[0]!),
    isSettled: (key) => isClaimSettled(key, context),
    reconcile: (key, signal) => reconcileClaim(key, context, (claimKey) => claimController.queue.add(claimKey), signal),
  })
  const volumeController = createController({
    ...common,
    name: queueName('volumes'),
    ...(provisioner.instance === undefined ? { laneOf: laneOfVolume, silentLanes: deps.silentNodes } : {}),
    operation: { component: 'provisioner', name: 'Delete' },
    sources: [
      source({
        cache: volumes,
        keysOf: (volume) => [keyOfObject(volume)],
        matters: isRelevantVolumeChange,
        mayNeedReconcile: needsWork,
      }),
      source({
        cache: attachments,
        keysOf: (attachment) =>
          volumesOf(attachment).filter((name) => {
            const volume = volumes.get({ name })
            return volume !== undefined && needsWork(volume)
          }),
      }),
      // A released volume can be deleted after its claim was deleted or bound to another volume.
      source({
        cache: claims,
        keysOf: (claim) => volumes.byIndex(VOLUMES_BY_CLAIM, keyOfObject(claim)).filter(needsWork).map(keyOfObject),
        matters: (current, previous) => current.spec?.volumeName !== previous.spec?.volumeName,
      }),
    ],
    reconcile: (key, signal) => reconcileVolume(key, context, signal),
  })

  /** Starts an attempt for every claim in the journal, including deleted claims, which no cache contains. */
  async function resumeRecorded(unopenedJournal: IntentJournal, signal: AbortSignal): Promise<void> {
    for (const claim of await openJournal(unopenedJournal, signal)) {
      attempts.getOrCreate(claim, { is: 'unknown' })
      claimController.queue.add(keyOfObject(claim))
    }
  }

  /** Retries until the API server responds. Throws if another process has opened the journal, or on abort. */
  async function openJournal(unopenedJournal: IntentJournal, signal: AbortSignal): Promise<readonly Claim[]> {
    for (let failures = 1; ; failures++) {
      try {
        return await unopenedJournal.open()
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        log.warn({ err: error, provisioner: provisioner.name }, 'cannot read the recorded intents; trying again')
        await clock.sleep(backoffMs(OPEN_BACKOFF, failures, random), signal)
      }
    }
  }

  const controllers = [claimController, volumeController]
  for (const { queue } of controllers) metrics?.queues.add(queue)
  return {
    queues: controllers.map(({ queue }) => queue),
    async run(signal) {
      try {
        if (journal) await resumeRecorded(journal, signal)
      } catch (error) {
        if (signal.aborted) return
        throw error
      }
      const unregister = journal ? undefined : registerWithBinder(deps.runningProvisioners, context)
      try {
        await Promise.all([...controllers.map((controller) => controller.run(signal)), ownRecorder?.run(signal)])
      } finally {
        unregister?.()
        await journal?.close()
      }
    },
  }
}

function registerWithBinder(
  provisioners: RunningProvisioners | undefined,
  { provisioner: { name, instance }, intentFinalizer, expectedIntents }: ProvisioningContext,
): (() => void) | undefined {
  return provisioners?.add({
    name,
    instance,
    intentFinalizer,
    expectIntent: (claim) => void expectedIntents.set(keyOfObject(claim), claim.metadata.uid),
    forgetIntent: (claim) => void expectedIntents.delete(keyOfObject(claim)),
  })
}

/** Returns the class of a claim that has no volume or has an intent. */
function classesOf(claim: Claim): string[] {
  const isPending =
    !claim.spec?.volumeName || claim.metadata.finalizers?.some((finalizer) => finalizer.startsWith(INTENT_PREFIX))
  const name = claimClassName(claim)
  return isPending && name ? [name] : []
}

function claimsOf({ spec }: Volume): ObjectKey[] {
  const { namespace, name } = spec?.claimRef ?? {}
  return name ? [`${namespace}/${name}`] : []
}

const volumesOf = ({ spec }: Readonly<VolumeAttachment>): ObjectKey[] =>
  spec?.source?.persistentVolumeName ? [spec.source.persistentVolumeName] : []

/** Ignores changes of finalizers, labels and status, which must not end a backoff early. */
const isRelevantClaimChange = (current: Claim, previous: Claim): boolean =>
  RELEVANT_ANNOTATIONS.some((name) => current.metadata.annotations?.[name] !== previous.metadata.annotations?.[name]) ||
  (current.metadata.deletionTimestamp === undefined) !== (previous.metadata.deletionTimestamp === undefined) ||
  claimClassName(current) !== claimClassName(previous) ||
  (current.spec?.volumeName ?? '') !== (previous.spec?.volumeName ?? '')

const RELEVANT_ANNOTATIONS = [PROVISIONER, PROVISIONER_BETA, SELECTED_NODE]

const hasNewOwner = (current: Volume, previous: Volume): boolean =>
  current.spec?.claimRef?.uid !== previous.spec?.claimRef?.uid

const isRelevantVolumeChange = (current: Volume, previous: Volume): boolean =>
  current.status?.phase !== previous.status?.phase ||
  current.spec?.persistentVolumeReclaimPolicy !== previous.spec?.persistentVolumeReclaimPolicy ||
  current.spec?.claimRef?.uid !== previous.spec?.claimRef?.uid ||
  (current.metadata.deletionTimestamp === undefined) !== (previous.metadata.deletionTimestamp === undefined) ||
  !jsonEquals(current.metadata.finalizers, previous.metadata.finalizers) ||
  haveAnnotationsChanged(current.metadata.annotations, previous.metadata.annotations)

/** Ignores the annotation that the controller itself sets before a deletion. */
function haveAnnotationsChanged(current: Annotations = {}, previous: Annotations = {}): boolean {
  if (current === previous) return false
  const { [DELETION_REQUESTED_ANNOTATION]: _, ...currentAnnotations } = current
  const { [DELETION_REQUESTED_ANNOTATION]: __, ...previousAnnotations } = previous
  return !jsonEquals(currentAnnotations, previousAnnotations)
}

type Annotations = Readonly<Record<string, string>>
