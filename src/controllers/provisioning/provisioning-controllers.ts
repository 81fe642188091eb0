// The lifecycle around one provisioner, as two controllers: claims that want a volume, and volumes that nobody wants any
// more. Runs in the control plane's process or alone beside any Kubernetes server; it needs only the API and the storage.
// Where a leader is elected, they are made anew for every term: what one knew is not true for the next.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { keyOfObject, type ObjectKey } from '../../client/index.ts'
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
import { DELETION_REQUESTED } from '../../volumes/deletion-requested.ts'
import type { Claim, Volume } from '../../volumes/matching.ts'
import { PROVISIONER, PROVISIONER_BETA, SELECTED_NODE } from '../../volumes/names.ts'
import { Attempts } from './attempts.ts'
import type { ProvisioningContext } from './context.ts'
import { BY_VOLUME, reconcileVolume } from './delete-volume.ts'
import { holdsIntent, INTENT_PREFIX, intentOf } from './intent.ts'
import type { ProvisioningMetrics } from './metrics.ts'
import { type ProvisioningOptions, settingsOf } from './options.ts'
import { planVolume } from './plan-volume.ts'
import type { Provisioner } from './provisioner.ts'
import { reconcileClaim } from './reconcile-claim.ts'
import { isAsked } from './select-claim.ts'

export interface ProvisioningDeps extends ControllerDeps {
  readonly provisioner: Provisioner
  readonly options?: ProvisioningOptions
  readonly provisioningMetrics?: ProvisioningMetrics
  /** Run by whoever made it. Absent: the controllers have one of their own. */
  readonly events?: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
}

export interface ProvisioningControllers {
  readonly queues: readonly WorkQueue[]
  /** Settles when the last claim and volume in work have. */
  run(signal: AbortSignal): Promise<void>
}

const BY_CLASS = 'provisioning: class'
const BY_CLAIM = 'provisioning: claim'

export function createProvisioningControllers(deps: ProvisioningDeps): ProvisioningControllers {
  const { client, caches, clock, random, log, metrics, provisioner, provisioningMetrics, election } = deps
  const settings = settingsOf(deps.options ?? {})
  const ownEvents = deps.events
    ? undefined
    : createEventRecorder({ client, clock, random, log, component: provisioner.name })
  const [claims, volumes] = [caches.of(persistentVolumeClaimKind), caches.of(persistentVolumeKind)]
  const [classes, attachments] = [caches.of(storageClassKind), caches.of(volumeAttachmentKind)]
  claims.addIndex(BY_CLASS, classesOf)
  volumes.addIndex(BY_CLAIM, claimsOf)
  attachments.addIndex(BY_VOLUME, volumesOf)
  const context: ProvisioningContext = {
    provisioner,
    settings,
    intent: intentOf(provisioner.name, provisioner.instance),
    client,
    trySave: createSaver({ client, election, caches: [claims] }).trySave,
    clock,
    random,
    log,
    events: deps.events ?? ownEvents!,
    metrics: provisioningMetrics,
    election,
    claims,
    volumes,
    classes,
    attachments,
    attempts: new Attempts(),
  }

  const { attempts, intent } = context
  const mayAskUs = (claim: Claim): boolean =>
    isAsked(claim, provisioner.name) || holdsIntent(claim, intent) || attempts.knows(keyOfObject(claim))
  const mayBeForUs = (volume: Volume): boolean =>
    claimsOf(volume).some((key) => {
      const claim = claims.get(key)
      return claim ? mayAskUs(claim) : attempts.knows(key)
    })
  const needsWork = (volume: Volume): boolean =>
    planVolume(volume, provisioner, settings.volumeFinalizer).do !== 'nothing'

  // A provisioner that runs alone has the names that are charted already.
  const instance = provisioner.instance === undefined ? '' : `-${provisioner.instance}`
  const queueName = (name: string) => (settings.isOneOfSeveral ? `${provisioner.name}${instance}-${name}` : name)
  const { workers, backoff } = settings
  const common = { clock, random, log, metrics, workers, backoff }
  const claimController = createController({
    ...common,
    name: queueName('claims'),
    sources: [
      source({ cache: claims, keysOf: (claim) => [keyOfObject(claim)], matters: isAnotherWish, concerns: mayAskUs }),
      source({
        cache: classes,
        keysOf: ({ metadata: { name = '' } }) => claims.byIndex(BY_CLASS, name).map(keyOfObject),
      }),
      source({ cache: volumes, keysOf: claimsOf, matters: isForAnother, concerns: mayBeForUs }),
    ],
    reconcile: (key, signal) => reconcileClaim(key, context, (lost) => claimController.queue.add(lost), signal),
  })
  const volumeController = createController({
    ...common,
    name: queueName('volumes'),
    sources: [
      source({
        cache: volumes,
        keysOf: (volume) => [keyOfObject(volume)],
        matters: isAnotherState,
        concerns: needsWork,
      }),
      source({ cache: attachments, keysOf: volumesOf }),
      // A released volume that its claim still wanted: the claim went, or took another.
      source({
        cache: claims,
        keysOf: (claim) => volumes.byIndex(BY_CLAIM, keyOfObject(claim)).filter(needsWork).map(keyOfObject),
        matters: (next, old) => next.spec?.volumeName !== old.spec?.volumeName,
      }),
    ],
    reconcile: (key, signal) => reconcileVolume(key, context, signal),
  })
  const controllers = [claimController, volumeController]
  for (const { queue } of controllers) metrics?.queues.add(queue)
  return {
    queues: controllers.map(({ queue }) => queue),
    async run(signal) {
      await Promise.all([...controllers.map((one) => one.run(signal)), ownEvents?.run(signal)])
    },
  }
}

/** Only what a provisioner may have to look at: without a volume, or with something begun. */
function classesOf(claim: Claim): string[] {
  const isOpen = !claim.spec?.volumeName || claim.metadata.finalizers?.some((one) => one.startsWith(INTENT_PREFIX))
  const name = claimClassName(claim)
  return isOpen && name ? [name] : []
}

function claimsOf({ spec }: Volume): ObjectKey[] {
  const { namespace, name } = spec?.claimRef ?? {}
  return name ? [`${namespace}/${name}`] : []
}

const volumesOf = ({ spec }: Readonly<VolumeAttachment>): ObjectKey[] =>
  spec?.source?.persistentVolumeName ? [spec.source.persistentVolumeName] : []

/** Our own writes, and those of people who label things, do not cut a backoff short. */
const isAnotherWish = (next: Claim, old: Claim): boolean => wishOf(next) !== wishOf(old)

const wishOf = ({ metadata, spec }: Claim): string =>
  JSON.stringify([
    ...[PROVISIONER, PROVISIONER_BETA, SELECTED_NODE].map((name) => metadata.annotations?.[name] ?? null),
    metadata.deletionTimestamp !== undefined,
    claimClassName({ metadata, spec }) ?? null,
    spec?.volumeName ?? '',
  ])

const isForAnother = (next: Volume, old: Volume): boolean => next.spec?.claimRef?.uid !== old.spec?.claimRef?.uid

const isAnotherState = (next: Volume, old: Volume): boolean => stateOf(next) !== stateOf(old)

function stateOf({ metadata, spec, status }: Volume): string {
  const { [DELETION_REQUESTED]: _, ...annotations } = metadata.annotations ?? {}
  return JSON.stringify([
    status?.phase,
    spec?.persistentVolumeReclaimPolicy,
    spec?.claimRef?.uid,
    metadata.deletionTimestamp !== undefined,
    metadata.finalizers,
    annotations,
  ])
}
