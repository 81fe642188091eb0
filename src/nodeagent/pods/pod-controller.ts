// The controller of the pods on this node. Keys are UIDs, because the volumes of a deleted pod are found by its UID.
import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { keyOfObject, keyOfRef } from '../../client/index.ts'
import {
  type Cache,
  type ClientMetrics,
  type Controller,
  createController,
  nameByDeletion,
  type Outcome,
  source,
} from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import type { WatchedObjects } from '../volume-objects.ts'
import { RETRY_MS_MAX, RETRY_MS_MIN } from './mount-backoff.ts'

export const BY_UID = 'node/uid'
const BY_CLAIM = 'node/claim'

export interface PodControllerDeps {
  readonly nodeName: string
  readonly pods: Cache<Pod>
  /** Undefined if the agent reads claims, volumes and attachments by name. */
  readonly watched?: WatchedObjects
  readonly csiDrivers: Cache<CSIDriver>
  /** Contains only this node. */
  readonly nodes: Cache<Node>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: Partial<ClientMetrics>
  /** Called before a pod is retried on request. */
  onRetry(uid: string): void
  reconcile(uid: string, signal: AbortSignal): Promise<Outcome>
}

const NAME = 'node-pods'
const WORKERS = 32 // pods that are started or stopped concurrently; most of the time is spent in driver calls

const uidsOf = ({ metadata }: Readonly<Pod>): string[] => (metadata.uid ? [metadata.uid] : [])

export function createPodController(deps: PodControllerDeps): Controller {
  const { nodeName, pods, watched, csiDrivers, nodes, reconcile } = deps
  const { clock, random, log, metrics } = deps
  pods.addIndex(BY_UID, uidsOf)
  pods.addIndex(BY_CLAIM, claimsOfPod)
  const podsOfClaim = (key: string) => pods.byIndex(BY_CLAIM, key).flatMap(uidsOf)
  const podsOfVolume = (volume: Readonly<PersistentVolume> | undefined) => {
    const { namespace, name } = volume?.spec?.claimRef ?? {}
    return name ? podsOfClaim(keyOfRef({ namespace: namespace ?? '', name })) : []
  }
  const volumeSources = ({ claims, volumes, attachments }: WatchedObjects) => [
    source({ cache: claims, keysOf: (claim) => podsOfClaim(keyOfObject(claim)) }),
    source({ cache: volumes, keysOf: (volume) => podsOfVolume(volume) }),
    source({
      cache: attachments,
      keysOf: ({ spec }) => {
        const name = spec.source.persistentVolumeName
        return spec.nodeName === nodeName && name ? podsOfVolume(volumes.get({ name })) : []
      },
    }),
  ]
  const controller: Controller = createController({
    name: NAME,
    clock,
    random,
    log,
    workers: WORKERS,
    backoff: { baseMs: RETRY_MS_MIN, maxMs: RETRY_MS_MAX },
    metrics,
    operation: {
      component: 'node',
      name: nameByDeletion('Unpublish', 'Publish'),
      objectOf: (uid) => pods.byIndex(BY_UID, uid)[0],
    },
    onRetry: deps.onRetry,
    sources: [
      source({ cache: pods, keysOf: uidsOf }),
      ...(watched ? volumeSources(watched) : []),
      source({ cache: csiDrivers, keysOf: () => incompletePodUids(controller) }),
      source({ cache: nodes, keysOf: () => incompletePodUids(controller), matters: hasAttachedVolumesChanged }),
    ],
    reconcile,
  })
  metrics?.queues?.add(controller.queue)
  return controller
}

const hasAttachedVolumesChanged = (newNode: Readonly<Node>, oldNode: Readonly<Node>): boolean =>
  attachedVolumeNames(newNode) !== attachedVolumeNames(oldNode)
const attachedVolumeNames = ({ status }: Readonly<Node>): string =>
  (status?.volumesAttached ?? []).map(({ name }) => name).join()

/** Returns the UIDs of the pods whose reconcile is not complete. */
export const incompletePodUids = ({ queue }: Pick<Controller, 'queue'>): string[] =>
  queue.states().map(({ key }) => key)
