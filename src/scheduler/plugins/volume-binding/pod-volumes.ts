// The claims of a pod, sorted by what has to be done about them before it can run:
//   bound        the volume is there; the node must reach it
//   delayed      a volume is chosen or made once the node is known
// Anything else means that no node will do yet, and says why.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import { annotationOf, claimClassName } from '../../../api/kinds/shared/class-names.ts'
import type { StorageClass } from '../../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import { quantityToBytes } from '../../../api/quantity.ts'
import type { ObjectKey } from '../../../client/index.ts'
import type { Cache } from '../../../runtime/index.ts'
import { BIND_COMPLETED, SELECTED_NODE } from '../../../volumes/names.ts'
import type { PodClaim, PodFacts } from '../../pod-facts.ts'
import {
  claimIsDeleted,
  claimIsForeign,
  claimIsLost,
  claimIsToCome,
  claimNotFound,
  REASON_IMMEDIATE,
} from './reasons.ts'

type Claim = Readonly<PersistentVolumeClaim>

export interface BoundClaim {
  readonly key: ObjectKey
  readonly name: string
  readonly claim: Claim
  readonly isEphemeral: boolean
  /** Undefined when the volume is not there. */
  readonly volume: Readonly<PersistentVolume> | undefined
}

export interface DelayedClaim {
  readonly key: ObjectKey
  readonly name: string
  readonly claim: Claim
  readonly storageClass: Readonly<StorageClass>
  readonly bytes: bigint
  readonly selectedNode: string | undefined
}

export type PodVolumes =
  | { readonly is: 'known'; readonly bound: readonly BoundClaim[]; readonly delayed: readonly DelayedClaim[] }
  | { readonly is: 'hopeless'; readonly because: string }

export interface VolumeCaches {
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  readonly classes: Cache<StorageClass>
}

/** `asIfUnbound` names claims to be judged as if their volumes had yet to be made. */
export function podVolumes(
  pod: PodFacts,
  caches: VolumeCaches,
  asIfUnbound: ReadonlySet<ObjectKey> = NONE,
): PodVolumes {
  const bound: BoundClaim[] = []
  const delayed: DelayedClaim[] = []
  let immediate: string | undefined
  for (const wanted of pod.claims) {
    const claim = caches.claims.get(wanted.key)
    const problem = problemOf(pod, wanted, claim)
    if (problem !== undefined || !claim) return { is: 'hopeless', because: problem ?? claimNotFound(wanted.name) }
    const className = claimClassName(claim) ?? ''
    const storageClass = className ? caches.classes.get(className) : undefined
    const isDelayed = storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
    const { key, name, isEphemeral } = wanted
    if (isBound(claim) && !(isDelayed && asIfUnbound.has(key))) {
      const volume = caches.volumes.get(claim.spec?.volumeName ?? '')
      bound.push({ key, name, claim, isEphemeral, volume })
    } else if (isDelayed && (!claim.spec?.volumeName || asIfUnbound.has(key))) {
      const selectedNode = asIfUnbound.has(key) ? undefined : annotationOf(claim, SELECTED_NODE) || undefined
      delayed.push({ key, name, claim, storageClass, bytes: requestedBytes(claim), selectedNode })
    } else immediate ??= whyUnbound(name, className, storageClass !== undefined)
  }
  if (immediate !== undefined) return { is: 'hopeless', because: immediate }
  delayed.sort((a, b) => (a.bytes < b.bytes ? -1 : a.bytes > b.bytes ? 1 : a.key < b.key ? -1 : 1))
  return { is: 'known', bound, delayed }
}

const NONE: ReadonlySet<ObjectKey> = new Set()

function problemOf({ pod, key: podKey }: PodFacts, { key, name, isEphemeral }: PodClaim, claim: Claim | undefined) {
  if (!claim) return isEphemeral ? claimIsToCome(name) : claimNotFound(name)
  if (isEphemeral && !isOwnedBy(claim, pod)) return claimIsForeign(key, podKey)
  if (claim.status?.phase === 'Lost') return claimIsLost(name, claim.spec?.volumeName ?? '')
  if (claim.metadata.deletionTimestamp) return claimIsDeleted(name)
  return undefined
}

/** The binder has to act first; where it cannot, for want of the class, that is said too. */
const whyUnbound = (name: string, className: string, hasClass: boolean): string =>
  className === '' || hasClass
    ? REASON_IMMEDIATE
    : `${REASON_IMMEDIATE}: claim ${JSON.stringify(name)} names the storage class ${JSON.stringify(className)}, which does not exist`

export const isBound = (claim: Claim): boolean =>
  Boolean(claim.spec?.volumeName) && annotationOf(claim, BIND_COMPLETED) !== undefined

export const isOwnedBy = ({ metadata }: Claim, pod: Readonly<Pod>): boolean =>
  metadata.ownerReferences?.some(({ controller, uid }) => controller === true && uid === pod.metadata.uid) ?? false

export const requestedBytes = (claim: Claim): bigint => quantityToBytes(claim.spec?.resources?.requests?.storage ?? '0')
