// Removes the protection finalizers of claims, volumes and attributes classes that are being deleted and not in use, and
// adds missing finalizers to existing objects: to classes only while the VolumeAttributesClass gate is on.
//   A claim is in use by the pods that protected-by.ts determines.
//   A volume is in use while it is bound.
//   A class is in use by claims that request it, have it or are being modified to it, and by volumes that name it.
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
import {
  backOff,
  type Cache,
  createController,
  done,
  nameByDeletion,
  type Outcome,
  source,
  stuck,
} from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'
import { CLAIM_PROTECTION_FINALIZER, VOLUME_PROTECTION_FINALIZER } from '../../volumes/names.ts'
import { attributesClassesOf, claimsProtectedBy, protectsClaim } from './protected-by.ts'

const BY_CLAIM = 'protection/claim'
const BY_CLASS = 'protection/attributes class'

export interface ProtectionDeps extends ControllerDeps {
  /** Default: all gates are on. */
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

  const sharedOptions = { clock, random, log, metrics }
  const controllers = [
    createController({
      ...sharedOptions,
      name: 'claim-protection',
      operation: { component: 'protection', name: nameByDeletion('Delete', 'Protect') },
      sources: [
        source({
          cache: claims,
          keysOf: ownKey,
          mayNeedReconcile: (claim) => needsReconcile(claim, CLAIM_PROTECTION_FINALIZER),
        }),
        source({
          cache: pods,
          keysOf: claimsOfPod,
          mayNeedReconcile: (pod) =>
            claimsOfPod(pod).some((key) => {
              const claim = claims.get(key)
              return claim !== undefined && needsReconcile(claim, CLAIM_PROTECTION_FINALIZER)
            }),
        }),
      ],
      reconcile: (key) => reconcileClaim(key, { client, claims, pods }),
    }),
    createController({
      ...sharedOptions,
      name: 'volume-protection',
      operation: { component: 'protection', name: nameByDeletion('Delete', 'Protect') },
      sources: [
        source({
          cache: volumes,
          keysOf: ownKey,
          mayNeedReconcile: (volume) => needsReconcile(volume, VOLUME_PROTECTION_FINALIZER),
        }),
      ],
      reconcile: (key) => reconcileVolume(key, { client, volumes }),
    }),
    createController({
      ...sharedOptions,
      name: 'attributes-class-protection',
      operation: { component: 'protection', name: nameByDeletion('Delete', 'Protect') },
      sources: [
        source({ cache: classes, keysOf: ownKey }),
        // A change to a claim or volume matters only while its class's deletion is blocked, so added and updated
        // objects enqueue the class only then.
        source({ cache: claims, keysOf: attributesClassesOf, mayNeedReconcile: () => false }),
        source({ cache: volumes, keysOf: attributesClassOfVolume, mayNeedReconcile: () => false }),
      ],
      reconcile: (key) => reconcileClass(key, { client, classes, claims, volumes, gates }),
    }),
  ]
  for (const { queue } of controllers) metrics?.queues.add(queue)
  return {
    queues: controllers.map(({ queue }) => queue),
    run: async (signal: AbortSignal) =>
      void (await Promise.all(controllers.map((controller) => controller.run(signal)))),
  }
}

const attributesClassOfVolume = ({ spec }: Readonly<PersistentVolume>): string[] =>
  spec?.volumeAttributesClassName ? [spec.volumeAttributesClassName] : []

const ownKey = (object: Readonly<KubeObject>): string[] => [keyOfObject(object)]

async function reconcileClaim(
  key: string,
  { client, claims, pods }: { client: Client; claims: Cache<PersistentVolumeClaim>; pods: Cache<Pod> },
): Promise<Outcome> {
  const claim = claims.get(key)
  if (!claim) return done
  if (needsFinalizer(claim, CLAIM_PROTECTION_FINALIZER)) {
    return addFinalizer(client, persistentVolumeClaimKind, claim, CLAIM_PROTECTION_FINALIZER)
  }
  if (!isPendingDeletion(claim, CLAIM_PROTECTION_FINALIZER)) return done
  const users = pods.byIndex(BY_CLAIM, key).filter((pod) => protectsClaim(pod, claim))
  if (users.length > 0) return reportUsers(`claim ${key}`, podKind, users)
  // The cache may lag behind: check for pods that were created recently.
  const { items } = await client.list(podKind, { namespace: refOfKey(key).namespace ?? '' })
  const uncachedUsers = items.filter((pod) => protectsClaim(pod, claim))
  if (uncachedUsers.length > 0) return reportUsers(`claim ${key}`, podKind, uncachedUsers)
  return removeFinalizer(client, persistentVolumeClaimKind, claim, CLAIM_PROTECTION_FINALIZER)
}

async function reconcileVolume(
  key: string,
  { client, volumes }: { client: Client; volumes: Cache<PersistentVolume> },
): Promise<Outcome> {
  const volume = volumes.get(key)
  if (!volume) return done
  if (needsFinalizer(volume, VOLUME_PROTECTION_FINALIZER)) {
    return addFinalizer(client, persistentVolumeKind, volume, VOLUME_PROTECTION_FINALIZER)
  }
  if (!isPendingDeletion(volume, VOLUME_PROTECTION_FINALIZER)) return done
  const { namespace = '', name = '' } = volume.spec?.claimRef ?? {}
  if (volume.status?.phase === 'Bound') {
    const waitsFor = { kind: persistentVolumeClaimKind.kind, namespace, name }
    return stuck(`volume ${key} is bound to claim ${namespace}/${name}`, { waitsFor })
  }
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
  if (needsFinalizer(attributesClass, CLASS_PROTECTION_FINALIZER) && gates.enabled('VolumeAttributesClass')) {
    return addFinalizer(client, volumeAttributesClassKind, attributesClass, CLASS_PROTECTION_FINALIZER)
  }
  if (!isPendingDeletion(attributesClass, CLASS_PROTECTION_FINALIZER)) return done
  const users = claims.byIndex(BY_CLASS, key)
  if (users.length > 0) return reportUsers(`attributes class ${key}`, persistentVolumeClaimKind, users)
  const volumeUsers = volumes.byIndex(BY_CLASS, key)
  if (volumeUsers.length > 0) return reportUsers(`attributes class ${key}`, persistentVolumeKind, volumeUsers)
  return removeFinalizer(client, volumeAttributesClassKind, attributesClass, CLASS_PROTECTION_FINALIZER)
}

const CLASS_PROTECTION_FINALIZER = 'kubernetes.io/vac-protection'

const isPendingDeletion = ({ metadata }: Readonly<KubeObject>, finalizer: string): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers?.includes(finalizer) ?? false)

const needsFinalizer = ({ metadata }: Readonly<KubeObject>, finalizer: string): boolean =>
  metadata.deletionTimestamp === undefined && !metadata.finalizers?.includes(finalizer)

const needsReconcile = (object: Readonly<KubeObject>, finalizer: string): boolean =>
  needsFinalizer(object, finalizer) || isPendingDeletion(object, finalizer)

const USER_NAMES: Readonly<Record<string, string>> = {
  Pod: 'pod',
  PersistentVolumeClaim: 'claim',
  PersistentVolume: 'volume',
}

/** Requires at least one user. */
const reportUsers = (object: string, { kind }: Pick<Kind, 'kind'>, users: readonly Readonly<Stored>[]): Outcome => {
  const first = users[0]!
  const { namespace, name } = first.metadata
  const suffix = users.length > 1 ? ` and ${users.length - 1} more` : ''
  const waitsFor = { kind, ...(namespace ? { namespace } : {}), name }
  return stuck(`${object} is used by ${USER_NAMES[kind]} ${keyOfObject(first)}${suffix}`, { waitsFor })
}

const removeFinalizer = <T extends KubeObject>(
  client: Client,
  kind: Kind<T>,
  object: Readonly<Stored<T>>,
  finalizer: string,
) => setFinalizers(client, kind, object, object.metadata.finalizers?.filter((name) => name !== finalizer) ?? [])

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
  finalizers: readonly string[],
): Promise<Outcome> {
  const { name, namespace, uid, resourceVersion } = object.metadata
  const body = { metadata: { uid, resourceVersion, finalizers: finalizers.length > 0 ? finalizers : null } }
  try {
    await client.patch(kind, { name, namespace }, { type: 'merge', body })
    return done
  } catch (error) {
    if (isNotFound(error)) return done
    if (isConflict(error)) return backOff('the object changed during the reconcile')
    throw error
  }
}
