// Removes the protection finalizers of claims, volumes and attributes classes that are being deleted, once nothing uses
// them. Woken by the object and by its users. Also adds the finalizer to objects that admission did not give one.
//   a claim    is used by pods on a node that name it, including terminated ones
//   a volume   is used while it is bound
//   a class    is used by claims and volumes that request it or have it
import { allGatesOn, type FeatureGates } from '../../api/feature-gates.ts'
import type { Kind, KubeObject, Stored } from '../../api/kind.ts'
import { volumeAttributesClassKind } from '../../api/kinds/attributes-class/attributes-class.ts'
import type { VolumeAttributesClass } from '../../api/kinds/attributes-class/attributes-class-schema.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import { type Client, keyOfObject, refOfKey } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { backOff, type Cache, createController, done, type Outcome, source, stuck } from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import { CLAIM_PROTECTION_FINALIZER, VOLUME_PROTECTION_FINALIZER } from '../../volumes/names.ts'
import { attributesClassesOf, claimsProtectedBy, protectsClaim } from './protected-by.ts'

const BY_CLAIM = 'protection/claim'
const BY_CLASS = 'protection/attributes class'

export interface ProtectionDeps extends ControllerDeps {
  /** Default: all on. */
  readonly gates?: FeatureGates
}

export function createProtectionControllers(deps: ProtectionDeps) {
  const { client, caches, clock, random, log, metrics, gates = allGatesOn } = deps
  const claims = caches.of(persistentVolumeClaimKind)
  const volumes = caches.of(persistentVolumeKind)
  const classes = caches.of(volumeAttributesClassKind)
  const pods = caches.of(podKind)
  pods.addIndex(BY_CLAIM, claimsProtectedBy)
  claims.addIndex(BY_CLASS, attributesClassesOf)
  volumes.addIndex(BY_CLASS, attributesClassOfVolume)

  const common = { clock, random, log, metrics }
  const controllers = [
    createController({
      ...common,
      name: 'claim-protection',
      sources: [
        source({ cache: claims, keysOf: keyOf, concerns: (claim) => needsWork(claim, CLAIM_PROTECTION_FINALIZER) }),
        source({ cache: pods, keysOf: claimsOfPod }),
      ],
      reconcile: (key) => reconcileClaim(key, { client, claims, pods }),
    }),
    createController({
      ...common,
      name: 'volume-protection',
      sources: [
        source({ cache: volumes, keysOf: keyOf, concerns: (volume) => needsWork(volume, VOLUME_PROTECTION_FINALIZER) }),
      ],
      reconcile: (key) => reconcileVolume(key, { client, volumes }),
    }),
    createController({
      ...common,
      name: 'attributes-class-protection',
      sources: [
        source({ cache: classes, keysOf: (object) => keyOf(object) }),
        // A new user of a class does not matter; only the end of a use can complete its deletion.
        source({ cache: claims, keysOf: attributesClassesOf, concerns: () => false }),
        source({ cache: volumes, keysOf: attributesClassOfVolume, concerns: () => false }),
      ],
      reconcile: (key) => reconcileClass(key, { client, classes, claims, volumes, gates }),
    }),
  ]
  for (const { queue } of controllers) metrics?.queues.add(queue)
  return {
    queues: controllers.map(({ queue }) => queue),
    run: async (signal: AbortSignal) => void (await Promise.all(controllers.map((one) => one.run(signal)))),
  }
}

const attributesClassOfVolume = ({ spec }: Readonly<PersistentVolume>): string[] =>
  spec?.volumeAttributesClassName ? [spec.volumeAttributesClassName] : []

const keyOf = (object: Readonly<KubeObject>): string[] => [keyOfObject(object)]

async function reconcileClaim(
  key: string,
  { client, claims, pods }: { client: Client; claims: Cache<PersistentVolumeClaim>; pods: Cache<Pod> },
): Promise<Outcome> {
  const claim = claims.get(key)
  if (!claim) return done
  if (lacks(claim, CLAIM_PROTECTION_FINALIZER)) {
    return addFinalizer(client, persistentVolumeClaimKind, claim, CLAIM_PROTECTION_FINALIZER)
  }
  if (!isPendingDeletion(claim, CLAIM_PROTECTION_FINALIZER)) return done
  const users = pods.byIndex(BY_CLAIM, key).filter((pod) => protectsClaim(pod, claim))
  if (users.length > 0) return inUse('pod', users)
  // The cache may lag behind: check for a pod that was created a moment ago.
  const { items } = await client.list(podKind, { namespace: refOfKey(key).namespace ?? '' })
  const late = items.filter((pod) => protectsClaim(pod, claim))
  if (late.length > 0) return inUse('pod', late)
  return removeFinalizer(client, persistentVolumeClaimKind, claim, CLAIM_PROTECTION_FINALIZER)
}

async function reconcileVolume(
  key: string,
  { client, volumes }: { client: Client; volumes: Cache<PersistentVolume> },
): Promise<Outcome> {
  const volume = volumes.get(key)
  if (!volume) return done
  if (lacks(volume, VOLUME_PROTECTION_FINALIZER)) {
    return addFinalizer(client, persistentVolumeKind, volume, VOLUME_PROTECTION_FINALIZER)
  }
  if (!isPendingDeletion(volume, VOLUME_PROTECTION_FINALIZER)) return done
  const { namespace = '', name = '' } = volume.spec?.claimRef ?? {}
  if (volume.status?.phase === 'Bound') return stuck(`it is bound to the claim ${namespace}/${name}`)
  return removeFinalizer(client, persistentVolumeKind, volume, VOLUME_PROTECTION_FINALIZER)
}

interface ClassDeps {
  readonly client: Client
  readonly classes: Cache<VolumeAttributesClass>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  readonly gates: FeatureGates
}

async function reconcileClass(key: string, deps: ClassDeps): Promise<Outcome> {
  const { client, classes, claims, volumes, gates } = deps
  const attributesClass = classes.get(key)
  if (!attributesClass) return done
  if (lacks(attributesClass, CLASS_FINALIZER) && gates.enabled('VolumeAttributesClass')) {
    return addFinalizer(client, volumeAttributesClassKind, attributesClass, CLASS_FINALIZER)
  }
  if (!isPendingDeletion(attributesClass, CLASS_FINALIZER)) return done
  const users = claims.byIndex(BY_CLASS, key)
  if (users.length > 0) return inUse('claim', users)
  const provided = volumes.byIndex(BY_CLASS, key)
  if (provided.length > 0) return inUse('volume', provided)
  return removeFinalizer(client, volumeAttributesClassKind, attributesClass, CLASS_FINALIZER)
}

const CLASS_FINALIZER = 'kubernetes.io/vac-protection'

const isPendingDeletion = ({ metadata }: Readonly<KubeObject>, finalizer: string): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers?.includes(finalizer) ?? false)

const lacks = ({ metadata }: Readonly<KubeObject>, finalizer: string): boolean =>
  metadata.deletionTimestamp === undefined && !metadata.finalizers?.includes(finalizer)

const needsWork = (object: Readonly<KubeObject>, finalizer: string): boolean =>
  lacks(object, finalizer) || isPendingDeletion(object, finalizer)

const inUse = (what: string, users: readonly Readonly<KubeObject>[]): Outcome => {
  const [first] = users
  const others = users.length > 1 ? ` and ${users.length - 1} more` : ''
  return stuck(`it is used by the ${what} ${keyOfObject(first!)}${others}`)
}

/** Conditional on resourceVersion: a new user has changed the object, or is rejected because it is being deleted. */
const removeFinalizer = <T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  object: Readonly<Stored<T>>,
  finalizer: string,
) => setFinalizers(client, kind, object, object.metadata.finalizers?.filter((one) => one !== finalizer) ?? [])

const addFinalizer = <T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  object: Readonly<Stored<T>>,
  finalizer: string,
) => setFinalizers(client, kind, object, [...(object.metadata.finalizers ?? []), finalizer])

async function setFinalizers<T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  object: Readonly<Stored<T>>,
  kept: readonly string[],
): Promise<Outcome> {
  const { name, namespace, uid, resourceVersion } = object.metadata
  const body = { metadata: { uid, resourceVersion, finalizers: kept.length > 0 ? kept : null } }
  try {
    await client.patch(kind, { name, namespace }, { type: 'merge', body })
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the object changed during the reconcile')
    throw error
  }
}
