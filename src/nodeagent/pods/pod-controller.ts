// The controller of the pods on this node, woken by the pod, its claims, their volumes and attachments, the node's
// volumesAttached, and CSIDrivers. Keyed by uid, so that mounts and files of a deleted pod are still removed.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { keyOfObject, keyOfRef } from '../../client/index.ts'
import {
  type Cache,
  type ClientMetrics,
  type Controller,
  createController,
  type Outcome,
  source,
} from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import { FIRST_RETRY_MS, LAST_RETRY_MS } from './attempts.ts'

export const BY_UID = 'node/uid'
export const BY_CLAIM = 'node/claim'

export interface PodControllerDeps {
  readonly nodeName: string
  readonly pods: Cache<Pod>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  readonly attachments: Cache<VolumeAttachment>
  readonly csiDrivers: Cache<CSIDriver>
  /** Contains only this node. */
  readonly nodes: Cache<Node>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics?: ClientMetrics
  reconcile(uid: string, signal: AbortSignal): Promise<Outcome>
}

const NAME = 'node-pods'
const WORKERS = 32 // pods started or stopped at once; each waits for its driver most of the time

const uidOf = ({ metadata }: Readonly<Pod>): string[] => (metadata.uid ? [metadata.uid] : [])

export function createPodController(deps: PodControllerDeps): Controller {
  const { nodeName, pods, claims, volumes, attachments, csiDrivers, nodes, reconcile } = deps
  const { clock, random, log, metrics } = deps
  pods.addIndex(BY_UID, uidOf)
  pods.addIndex(BY_CLAIM, claimsOfPod)
  const usersOfClaim = (key: string) => pods.byIndex(BY_CLAIM, key).flatMap(uidOf)
  const usersOfVolume = (volume: Readonly<PersistentVolume> | undefined) => {
    const { namespace, name } = volume?.spec?.claimRef ?? {}
    return name ? usersOfClaim(keyOfRef({ namespace: namespace ?? '', name })) : []
  }
  const controller: Controller = createController({
    name: NAME,
    clock,
    random,
    log,
    workers: WORKERS,
    backoff: { baseMs: FIRST_RETRY_MS, maxMs: LAST_RETRY_MS },
    metrics,
    sources: [
      source({ cache: pods, keysOf: uidOf }),
      source({ cache: claims, keysOf: (claim) => usersOfClaim(keyOfObject(claim)) }),
      source({ cache: volumes, keysOf: (volume) => usersOfVolume(volume) }),
      source({
        cache: attachments,
        keysOf: ({ spec }) => {
          const name = spec.source.persistentVolumeName
          return spec.nodeName === nodeName && name ? usersOfVolume(volumes.get({ name })) : []
        },
      }),
      source({ cache: csiDrivers, keysOf: () => unfinished(controller) }),
      source({ cache: nodes, keysOf: () => unfinished(controller), matters: isListChanged }),
    ],
    reconcile,
  })
  metrics?.queues.add(controller.queue)
  return controller
}

const isListChanged = (next: Readonly<Node>, old: Readonly<Node>): boolean =>
  namesAttachedTo(next) !== namesAttachedTo(old)
const namesAttachedTo = ({ status }: Readonly<Node>): string =>
  (status?.volumesAttached ?? []).map(({ name }) => name).join()

/** Pods that are not done and may be able to continue now. */
export const unfinished = ({ queue }: Pick<Controller, 'queue'>): string[] => queue.standings().map(({ key }) => key)
