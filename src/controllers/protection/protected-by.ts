// Which claims a pod protects, and which attributes classes a claim uses. Pure.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'

/** The claims a pod may protect: none before it is assigned, as no node starts a pod whose claim is being deleted. */
export const claimsProtectedBy = (pod: Readonly<Pod>): string[] => (pod.spec?.nodeName ? claimsOfPod(pod) : [])

/**
 * Whether a pod on a node protects a claim. A terminated pod does until it is deleted: its volumes may still be mounted.
 * The claim of an ephemeral volume is protected only by its owner, and no longer once the node has shut the pod down,
 * because the pod may itself wait for the claim's deletion.
 */
export function protectsClaim({ metadata, spec }: Readonly<Pod>, claim: Readonly<PersistentVolumeClaim>): boolean {
  if (!spec?.nodeName || metadata.namespace !== claim.metadata.namespace) return false
  const isShutDown = metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0
  const isOwner = claim.metadata.ownerReferences?.some(({ controller, uid }) => controller && uid === metadata.uid)
  return (spec.volumes ?? []).some(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return persistentVolumeClaim.claimName === claim.metadata.name
    return ephemeral && `${metadata.name}-${name}` === claim.metadata.name && isOwner && !isShutDown
  })
}

/** The requested class, the current one, and the target of a modification in progress. */
export function attributesClassesOf({ spec, status }: Readonly<PersistentVolumeClaim>): string[] {
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]
  return [...new Set(names.filter((name): name is string => Boolean(name)))]
}
