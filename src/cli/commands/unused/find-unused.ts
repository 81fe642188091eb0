// Finds claims without pods, volumes without claims and classes without either, with the space that each would free and the
// command that removes or explains it.

import type { Stored } from '../../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { hasTerminated } from '../../../api/kinds/pod/has-terminated.ts'
import { claimClassName, volumeClassName } from '../../../api/kinds/shared/class-names.ts'
import type { ObjectMeta } from '../../../api/kinds/shared/meta-schema.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { keyOfObject } from '../../../client/index.ts'
import { claimsOfPod } from '../../../volumes/claims-of-pod.ts'
import { bytesOf } from '../../space/bytes.ts'
import type { UnusedLists } from './cluster-lists.ts'

export interface UnusedObject {
  readonly kind: 'PersistentVolumeClaim' | 'PersistentVolume' | 'StorageClass' | 'VolumeAttributesClass'
  readonly namespace?: string
  readonly name: string
  readonly reason: 'NoPod' | 'Released' | 'DeletionPending' | 'Available' | 'ClaimLost' | 'NoVolume'
  readonly message: string
  /** The time since which it has been unused, or its creation time if `isSinceKnown` is false: it may have been used since then. */
  readonly since: string
  readonly isSinceKnown: boolean
  /** The bytes that are freed when the object and its storage are deleted. Absent if this is not known. */
  readonly freedBytes?: number
  readonly losesData: boolean
  /** The command that removes the object, or explains its state if its deletion is pending or its claim is lost. */
  readonly command: string
}

export interface UnusedOptions {
  readonly lists: UnusedLists
  /** The namespace of the lists, or undefined for all. Classes are only known to be unused if all claims are read. */
  readonly namespace: string | undefined
  /** The lists that could not be read. Objects are omitted if one of these lists decides whether they are used. */
  readonly unreadable: ReadonlySet<keyof UnusedLists>
  /** Objects that have been unused for a shorter time are omitted. */
  readonly olderThanMs: number
  readonly nowMs: number
}

type Claim = Readonly<Stored<PersistentVolumeClaim>>
type Volume = Readonly<Stored<PersistentVolume>>

export function findUnused({
  lists,
  namespace,
  unreadable,
  olderThanMs,
  nowMs,
}: UnusedOptions): readonly UnusedObject[] {
  const isReadable = (...names: readonly (keyof UnusedLists)[]) => names.every((name) => !unreadable.has(name))
  const hasAllClaims = namespace === undefined && isReadable('claims', 'volumes')
  const unused = [
    ...(isReadable('claims', 'pods') ? findClaims(lists) : []),
    ...(isReadable('claims', 'volumes') ? findVolumes(lists, namespace) : []),
    ...(hasAllClaims && isReadable('classes') ? findClasses(lists) : []),
    ...(hasAllClaims && isReadable('attributesClasses') ? findAttributesClasses(lists) : []),
  ]
  return unused.filter(({ since }) => nowMs - Date.parse(since) >= olderThanMs)
}

function findClaims({ claims, pods, volumes }: UnusedLists): UnusedObject[] {
  const usedKeys = new Set(pods.filter((pod) => !hasTerminated(pod)).flatMap(claimsOfPod))
  const volumesByName = new Map(volumes.map((volume) => [volume.metadata.name, volume]))
  return claims
    .filter((claim) => !usedKeys.has(keyOfObject(claim)) && !claim.metadata.deletionTimestamp)
    .map((claim) => describeClaim(claim, volumesByName.get(claim.spec?.volumeName ?? '')))
}

function describeClaim(claim: Claim, volume: Volume | undefined): UnusedObject {
  const { namespace = '', name } = claim.metadata
  const policy = volume?.spec?.persistentVolumeReclaimPolicy
  const hasVolume = Boolean(claim.spec?.volumeName)
  const condition = claim.status?.conditions?.find(({ type, status }) => type === UNUSED_CONDITION && status === 'True')
  const since = condition?.lastTransitionTime
  const capacityBytes = bytesOf(volume?.spec?.capacity?.storage ?? claim.status?.capacity?.storage)
  return {
    kind: 'PersistentVolumeClaim',
    namespace,
    name,
    reason: 'NoPod',
    message: claimMessage(hasVolume, policy),
    since: since ?? createdAt(claim.metadata),
    isSinceKnown: since !== undefined,
    ...(!hasVolume || policy === 'Retain'
      ? { freedBytes: 0 }
      : capacityBytes === undefined
        ? {}
        : { freedBytes: capacityBytes }),
    // Without permission to read the volume, its policy is not known: assume that the storage is deleted.
    losesData: hasVolume && policy !== 'Retain',
    command: `kubectl delete pvc -n ${namespace} ${name}`,
  }
}

/** The condition that kube-controller-manager sets with the feature gate PersistentVolumeClaimUnusedSinceTime. */
const UNUSED_CONDITION = 'Unused'

function claimMessage(hasVolume: boolean, policy: string | undefined): string {
  if (!hasVolume) return 'no pod uses it, and it has no volume'
  if (policy === 'Retain') return 'no pod uses it; its volume would be retained, and also be unused'
  return 'no pod uses it'
}

function findVolumes({ claims, volumes }: UnusedLists, namespace: string | undefined): UnusedObject[] {
  const claimUids = new Set(claims.map(({ metadata }) => metadata.uid))
  const isInScope = ({ spec }: Volume) => namespace === undefined || spec?.claimRef?.namespace === namespace
  const hasClaim = ({ spec }: Volume) => spec?.claimRef?.uid !== undefined && claimUids.has(spec.claimRef.uid)
  return volumes
    .filter((volume) => isInScope(volume) && !hasClaim(volume) && !volume.metadata.deletionTimestamp)
    .map(describeVolume)
}

function describeVolume(volume: Volume): UnusedObject {
  const { name } = volume.metadata
  const { claimRef, persistentVolumeReclaimPolicy: policy, capacity } = volume.spec ?? {}
  const { phase, lastPhaseTransitionTime } = volume.status ?? {}
  const claim = claimRef ? `${claimRef.namespace}/${claimRef.name}` : ''
  const common = {
    kind: 'PersistentVolume',
    name,
    since: lastPhaseTransitionTime ?? createdAt(volume.metadata),
    isSinceKnown: lastPhaseTransitionTime !== undefined,
  } as const
  const freedBytes = bytesOf(capacity?.storage)
  const removal = {
    ...(freedBytes === undefined ? {} : { freedBytes }),
    losesData: policy === 'Retain',
    command:
      policy === 'Retain'
        ? `kubectl patch pv ${name} -p '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'`
        : `stowage why pv/${name}`,
  }
  if (!claimRef?.uid)
    return {
      ...common,
      reason: 'Available',
      message: claimRef ? `it is reserved for the claim ${claim}` : 'no claim has bound it',
      // With the policy Delete it depends on the provisioner whether the storage is deleted too.
      ...(policy === 'Delete' ? { losesData: true } : { freedBytes: 0, losesData: false }),
      command: `kubectl delete pv ${name}`,
    }
  if (phase === 'Released' && policy === 'Retain')
    return {
      ...common,
      ...removal,
      reason: 'Released',
      message: `its claim ${claim} was deleted, and the volume retained`,
    }
  if (phase === 'Released' || phase === 'Failed')
    return {
      ...common,
      ...removal,
      reason: 'DeletionPending',
      message: `its claim ${claim} was deleted, but the driver has not deleted the volume yet`,
    }
  return { ...common, ...removal, reason: 'ClaimLost', message: `its claim ${claim} does not exist` }
}

function findClasses({ claims, volumes, classes }: UnusedLists): UnusedObject[] {
  const usedNames = new Set([...claims.map(claimClassName), ...volumes.map(volumeClassName)])
  return classes
    .filter(({ metadata }) => !usedNames.has(metadata.name))
    .map(({ metadata }) => ({
      kind: 'StorageClass',
      ...describeClass(metadata),
      message: isDefault(metadata)
        ? 'no claim or volume uses it; new claims get it by default'
        : 'no claim or volume uses it',
      command: `kubectl delete storageclass ${metadata.name}`,
    }))
}

const isDefault = ({ annotations }: ObjectMeta): boolean =>
  annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true'

function findAttributesClasses({ claims, volumes, attributesClasses }: UnusedLists): UnusedObject[] {
  const usedNames = new Set([
    ...claims.flatMap(({ spec, status }) => [
      spec?.volumeAttributesClassName,
      status?.currentVolumeAttributesClassName,
      status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
    ]),
    ...volumes.map(({ spec }) => spec?.volumeAttributesClassName),
  ])
  return attributesClasses
    .filter(({ metadata }) => !usedNames.has(metadata.name))
    .map(({ metadata }) => ({
      kind: 'VolumeAttributesClass',
      ...describeClass(metadata),
      message: 'no claim or volume uses it',
      command: `kubectl delete volumeattributesclass ${metadata.name}`,
    }))
}

const describeClass = (metadata: Readonly<ObjectMeta>) =>
  ({
    name: metadata.name ?? '',
    reason: 'NoVolume',
    since: createdAt(metadata),
    isSinceKnown: false,
    freedBytes: 0,
    losesData: false,
  }) as const

const createdAt = ({ creationTimestamp = '' }: Readonly<ObjectMeta>): string => creationTimestamp
