// Classifies a pod's claims:
//   bound        the claim has a volume, which the node must be able to reach
//   delayed      the volume is chosen or provisioned after the node is selected (WaitForFirstConsumer)
// A pod with any other claim is rejected for all nodes.

import type { Stored } from '../../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import { annotationOf, claimClassName } from '../../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import type { ObjectKey } from '../../../client/index.ts'
import type { Cache } from '../../../runtime/index.ts'
import { BIND_COMPLETED, SELECTED_NODE } from '../../../volumes/names.ts'
import type { PodClaim, PodInfo } from '../../cluster/pod-info.ts'
import type { Reason } from '../../framework/status.ts'
import {
  claimBeingDeleted,
  claimLost,
  claimNotFound,
  claimNotYetCreated,
  claimOfAnotherPod,
  storageClassNotFound,
  UNBOUND_EPHEMERAL_CLAIMS,
  UNBOUND_IMMEDIATE_CLAIMS,
} from './reasons.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

export interface BoundClaim {
  readonly key: ObjectKey
  readonly name: string
  readonly claim: Claim
  readonly isEphemeral: boolean
  /** Undefined if the volume does not exist. */
  readonly volume: Readonly<Stored<PersistentVolume>> | undefined
}

export interface DelayedClaim {
  readonly key: ObjectKey
  readonly name: string
  readonly claim: Claim
  readonly storageClass: Readonly<Stored<StorageClass>>
  readonly bytes: bigint
  readonly selectedNode: string | undefined
}

export type PodVolumes =
  | {
      readonly is: 'accepted'
      readonly boundClaims: readonly BoundClaim[]
      readonly delayedClaims: readonly DelayedClaim[]
    }
  | { readonly is: 'rejected'; readonly reason: Reason }

export interface VolumeCaches {
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  readonly classes: Cache<StorageClass>
}

/**
 * Returns the bound and the delayed claims of the pod, or the reason to reject it for all nodes. Treats the claims in
 * `claimsToRecreate` as if their volumes had yet to be provisioned.
 */
export function classifyClaims(
  pod: PodInfo,
  caches: VolumeCaches,
  claimsToRecreate: ReadonlySet<ObjectKey> = NO_CLAIMS,
): PodVolumes {
  const boundClaims: BoundClaim[] = []
  const delayedClaims: DelayedClaim[] = []
  let immediateReason: Reason | undefined
  for (const podClaim of pod.claims) {
    const claim = caches.claims.get(podClaim.key)
    const claimReason = rejectionReason(pod, podClaim, claim)
    if (claimReason || !claim) return { is: 'rejected', reason: claimReason ?? claimNotFound(podClaim.name) }
    const className = claimClassName(claim) ?? ''
    const storageClass = className ? caches.classes.get(className) : undefined
    const isDelayed = storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
    const { key, name, isEphemeral } = podClaim
    if (isBound(claim) && !(isDelayed && claimsToRecreate.has(key))) {
      const volume = caches.volumes.get(claim.spec?.volumeName)
      boundClaims.push({ key, name, claim, isEphemeral, volume })
    } else if (isDelayed && (!claim.spec?.volumeName || claimsToRecreate.has(key))) {
      const selectedNode = claimsToRecreate.has(key) ? undefined : annotationOf(claim, SELECTED_NODE) || undefined
      delayedClaims.push({ key, name, claim, storageClass, bytes: requestedBytes(claim), selectedNode })
    } else {
      const reason = unboundReason(podClaim, className, storageClass !== undefined)
      if (!immediateReason || (immediateReason.isTransient && !reason.isTransient)) immediateReason = reason
    }
  }
  if (immediateReason) return { is: 'rejected', reason: immediateReason }
  delayedClaims.sort((a, b) => (a.bytes < b.bytes ? -1 : a.bytes > b.bytes ? 1 : a.key < b.key ? -1 : 1))
  return { is: 'accepted', boundClaims, delayedClaims }
}

const NO_CLAIMS: ReadonlySet<ObjectKey> = new Set()

function rejectionReason(
  { pod, key: podKey }: PodInfo,
  { key, name, isEphemeral }: PodClaim,
  claim: Claim | undefined,
) {
  if (!claim) return isEphemeral ? claimNotYetCreated(name) : claimNotFound(name)
  if (isEphemeral && !isOwnedBy(claim, pod)) return claimOfAnotherPod(key, podKey)
  if (claim.status?.phase === 'Lost') return claimLost(name, claim.spec?.volumeName ?? '')
  if (claim.metadata.deletionTimestamp) return claimBeingDeleted(name)
  return undefined
}

/** Returns the reason to reject a pod until the binding controller has bound its claim. Names the class if it does not exist. */
function unboundReason({ name, isEphemeral }: PodClaim, className: string, hasClass: boolean): Reason {
  if (className !== '' && !hasClass) return storageClassNotFound(name, className)
  return isEphemeral ? UNBOUND_EPHEMERAL_CLAIMS : UNBOUND_IMMEDIATE_CLAIMS
}

export const isBound = (claim: Claim): boolean =>
  Boolean(claim.spec?.volumeName) && annotationOf(claim, BIND_COMPLETED) !== undefined

export const isOwnedBy = ({ metadata }: Claim, pod: Readonly<Pod>): boolean =>
  metadata.ownerReferences?.some(({ controller, uid }) => controller === true && uid === pod.metadata.uid) ?? false

export const requestedBytes = (claim: Claim): bigint => quantityToBytes(claim.spec?.resources?.requests?.storage ?? '0')
