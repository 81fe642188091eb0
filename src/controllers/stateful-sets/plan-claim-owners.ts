// Plans the owner references of a stateful set's claim according to the retention policy. The garbage collector then
// deletes the claim together with its owner. Pure.
//   whenScaled   whenDeleted   owner of the claim, while its pod is in range   owner, after the pod is scaled down
//   Retain       Retain        none                                            none
//   Retain       Delete        the set                                         the set
//   Delete       Retain        none                                            the pod
//   Delete       Delete        the set                                         the pod
import type { Stored } from '../../api/kind.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import type { StatefulSet } from '../../api/kinds/stateful-set/stateful-set-schema.ts'
import { podReference, SET_API_VERSION, SET_KIND, setReference } from './identity.ts'

export interface ClaimOwnersInput {
  readonly claim: Readonly<PersistentVolumeClaim>
  readonly set: Readonly<Stored<StatefulSet>>
  readonly podName: string
  /** Absent until the pod is created. */
  readonly pod?: Readonly<Stored<Pod>>
  /** Whether the pod is scaled down. */
  readonly isScaledDown: boolean
}

/** Returns the references that the claim should have, or undefined if they need no change or must not be changed. */
export function planClaimOwners(input: ClaimOwnersInput): readonly OwnerReference[] | undefined {
  const { claim, set, pod, podName } = input
  const references = claim.metadata.ownerReferences ?? []
  if (isStaleClaim(input)) return undefined // the garbage collector deletes the claim or removes the reference
  const isOurs = (reference: OwnerReference) => refersToSet(reference, set) || refersToPod(reference, podName)
  const otherReferences = references.filter((reference) => !isOurs(reference))
  const owner = otherReferences.some(({ controller }) => controller) ? undefined : findOwner(input)
  const ourReferences = references.filter(isOurs)
  const isCurrent = owner
    ? ourReferences.length === 1 && ourReferences[0]!.uid === owner.uid && ourReferences[0]!.controller === true
    : ourReferences.length === 0
  if (isCurrent || (!pod && input.isScaledDown)) return undefined
  return owner ? [...otherReferences, owner] : otherReferences
}

function findOwner({ set, pod, isScaledDown }: ClaimOwnersInput): OwnerReference | undefined {
  const { whenScaled, whenDeleted } = retentionOf(set)
  if (whenScaled === 'Delete' && isScaledDown) return pod && podReference(pod)
  return whenDeleted === 'Delete' ? setReference(set) : undefined
}

const retentionOf = ({ spec }: Readonly<StatefulSet>) => spec?.persistentVolumeClaimRetentionPolicy ?? {}

/** Whether the claim has a reference to an earlier set or pod of the same name. It may then be deleted at any time. */
export function isStaleClaim({ claim, set, pod, podName }: Omit<ClaimOwnersInput, 'isScaledDown'>): boolean {
  return (claim.metadata.ownerReferences ?? []).some(
    (reference) =>
      (refersToSet(reference, set) && reference.uid !== set.metadata.uid) ||
      (refersToPod(reference, podName) && reference.uid !== pod?.metadata.uid),
  )
}

/** Whether another controller owns the claim although the policy may delete it. The policy is then ignored. */
export function hasConflictingController({ claim, set, podName }: ClaimOwnersInput): boolean {
  const { whenScaled, whenDeleted } = retentionOf(set)
  if (whenScaled !== 'Delete' && whenDeleted !== 'Delete') return false
  return (claim.metadata.ownerReferences ?? []).some(
    (reference) => reference.controller && !refersToSet(reference, set) && !refersToPod(reference, podName),
  )
}

const refersToSet = ({ apiVersion, kind, name }: OwnerReference, set: Readonly<StatefulSet>): boolean =>
  apiVersion === SET_API_VERSION && kind === SET_KIND && name === set.metadata.name

const refersToPod = ({ apiVersion, kind, name }: OwnerReference, podName: string): boolean =>
  apiVersion === 'v1' && kind === 'Pod' && name === podName
