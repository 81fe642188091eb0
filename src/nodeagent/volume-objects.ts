// Reads the claims, volumes and attachments of the pods on this node, in one of two ways.
//   watched   from caches of all objects, if the agent's user may list and watch them
//   by name   with a get of each object before every reconcile of a pod, which is all that the Kubernetes node authorizer
//             grants. Changes are found by polling.

import type { Kind, KubeObject, Stored } from '../api/kind.ts'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../api/kinds/claim/claim-schema.ts'
import type { CSIDriver } from '../api/kinds/csi-driver/csi-driver-schema.ts'
import type { Pod } from '../api/kinds/pod/pod-schema.ts'
import { persistentVolumeKind } from '../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../api/kinds/volume/volume-schema.ts'
import { volumeAttachmentKind } from '../api/kinds/volume-attachment/volume-attachment.ts'
import type { VolumeAttachment } from '../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { compareQuantities } from '../api/quantity.ts'
import { isUnrelatedToNode } from '../api/status-error.ts'
import type { Random } from '../base/clock.ts'
import { type Client, find, keyOfRef, type ObjectRef, refOfKey } from '../client/index.ts'
import type { Cache, CacheSet } from '../runtime/index.ts'
import { attachmentNameOf } from '../volumes/attachment-names.ts'
import { claimsOfPod } from '../volumes/claims-of-pod.ts'

export interface ObjectReader<T extends KubeObject> {
  get(ref: ObjectRef): Readonly<Stored<T>> | undefined
}

export interface PodObjects {
  readonly claims: ObjectReader<PersistentVolumeClaim>
  readonly volumes: ObjectReader<PersistentVolume>
  readonly attachments: ObjectReader<VolumeAttachment>
}

export interface WatchedObjects extends PodObjects {
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  readonly attachments: Cache<VolumeAttachment>
}

export interface VolumeObjects {
  /** The caches whose changes cause a reconcile. Undefined if objects are read by name. */
  readonly watched?: WatchedObjects
  /** Returns the objects of a pod's volumes. Throws ApiError if the server fails. */
  read(pod: Readonly<Stored<Pod>> | undefined, signal: AbortSignal): Promise<PodObjects>
  /** Returns the time after which the pod must be reconciled again, because objects may have changed, or Infinity. */
  pollAfterMs(pod: Readonly<Stored<Pod>>, objects: PodObjects, progress: { readonly isMounted: boolean }): number
  /** Forgets a pod that was deleted or has terminated, by UID. */
  forget(uid: string): void
}

export function watchVolumeObjects(caches: CacheSet): VolumeObjects {
  const watched: WatchedObjects = {
    claims: caches.of(persistentVolumeClaimKind),
    volumes: caches.of(persistentVolumeKind),
    attachments: caches.of(volumeAttachmentKind),
  }
  return { watched, read: async () => watched, pollAfterMs: () => Number.POSITIVE_INFINITY, forget() {} }
}

export interface ReadByNameDeps {
  readonly client: Client
  readonly nodeName: string
  readonly csiDrivers: ObjectReader<CSIDriver>
  readonly random: Random
  /** Returns the number of pods on the node. */
  podCount(): number
}

/** Interval while volumes of a pod are not mounted. It grows by half with each read up to the maximum. */
const WAITING_POLL_MS = 500
const WAITING_POLL_MS_MAX = 10_000
/** Interval while a claim requests more storage than it has. */
const EXPANDING_POLL_MS = 5_000
/** Interval of other pods: this value times the number of pods on the node. An expansion is detected within about one interval. */
const MOUNTED_POLL_MS_PER_POD = 500
const MOUNTED_POLL_MS_MIN = 3_000
const MOUNTED_POLL_MS_MAX = 60_000

export function readVolumeObjectsByName({
  client,
  nodeName,
  csiDrivers,
  random,
  podCount,
}: ReadByNameDeps): VolumeObjects {
  /** The reads since the pod began to wait for its volumes, by UID. */
  const waitingReads = new Map<string, number>()

  async function read(pod: Readonly<Stored<Pod>> | undefined, signal: AbortSignal): Promise<PodObjects> {
    const claims = createObjectMap<PersistentVolumeClaim>()
    const volumes = createObjectMap<PersistentVolume>()
    const attachments = createObjectMap<VolumeAttachment>()
    const readInto = async <T extends KubeObject>(map: ObjectMap<T>, kind: Kind<T>, ref: ObjectRef) => {
      const object = await findRelated(client, kind, ref, signal)
      if (object) map.set(ref, object)
      return object
    }
    async function readClaim(key: string): Promise<void> {
      const claim = await readInto(claims, persistentVolumeClaimKind, refOfKey(key))
      const volumeName = claim?.spec?.volumeName
      const volume = volumeName ? await readInto(volumes, persistentVolumeKind, { name: volumeName }) : undefined
      const { driver, volumeHandle: handle } = volume?.spec?.csi ?? {}
      if (!driver || !handle || csiDrivers.get({ name: driver })?.spec.attachRequired === false) return
      await readInto(attachments, volumeAttachmentKind, { name: attachmentNameOf({ driver, handle, nodeName }) })
    }
    if (pod && !pod.metadata.deletionTimestamp) await Promise.all([...new Set(claimsOfPod(pod))].map(readClaim))

    return { claims, volumes, attachments }
  }

  function pollAfterMs(
    pod: Readonly<Stored<Pod>>,
    { claims }: PodObjects,
    { isMounted }: { readonly isMounted: boolean },
  ) {
    const uid = pod.metadata.uid
    const keys = claimsOfPod(pod)
    if (keys.length === 0) return Number.POSITIVE_INFINITY
    const mountedMs = Math.min(Math.max(MOUNTED_POLL_MS_PER_POD * podCount(), MOUNTED_POLL_MS_MIN), MOUNTED_POLL_MS_MAX)
    if (!isMounted) {
      const reads = waitingReads.get(uid) ?? 0
      waitingReads.set(uid, reads + 1)
      return Math.min(WAITING_POLL_MS * 1.5 ** reads, WAITING_POLL_MS_MAX, mountedMs)
    }
    waitingReads.delete(uid)
    if (keys.some((key) => isExpanding(claims.get(refOfKey(key))))) return Math.min(EXPANDING_POLL_MS, mountedMs)
    return mountedMs * (0.9 + 0.2 * random())
  }

  return { read, pollAfterMs, forget: (uid) => void waitingReads.delete(uid) }
}

/**
 * Reads an object that a pod of this node uses. Returns undefined if the object does not exist, or if the authorizer does not
 * know yet that the pod uses it.
 */
export async function findRelated<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  ref: ObjectRef,
  signal: AbortSignal,
): Promise<Readonly<Stored<T>> | undefined> {
  try {
    return await find(client, kind, ref, { signal })
  } catch (error) {
    if (isUnrelatedToNode(error)) return undefined
    throw error
  }
}

function isExpanding(claim: Readonly<PersistentVolumeClaim> | undefined): boolean {
  const requestedStorage = claim?.spec?.resources?.requests?.storage
  const capacity = claim?.status?.capacity?.storage
  return requestedStorage !== undefined && capacity !== undefined && compareQuantities(requestedStorage, capacity) > 0
}

interface ObjectMap<T extends KubeObject> extends ObjectReader<T> {
  set(ref: ObjectRef, object: Readonly<Stored<T>>): void
}

function createObjectMap<T extends KubeObject>(): ObjectMap<T> {
  const objects = new Map<string, Readonly<Stored<T>>>()
  return {
    get: (ref) => objects.get(keyOfRef(ref)),
    set: (ref, object) => void objects.set(keyOfRef(ref), object),
  }
}
