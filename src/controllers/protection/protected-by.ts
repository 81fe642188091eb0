// Determines which claims a pod protects and which attributes classes a claim protects from deletion. Pure.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'

/** Returns the keys of the claims that a pod may protect. An unassigned pod protects none. */
export const claimsProtectedBy = (pod: Readonly<Pod>): string[] => (pod.spec?.nodeName ? claimsOfPod(pod) : [])

/**
 * Whether a pod on a node protects a claim. A terminated pod protects its claims until it is deleted, because its volumes
 * may still be mounted. Only the owner protects the claim of an ephemeral volume, and only until the node has shut the
 * pod down, because the pod's own deletion may wait for the claim's deletion.
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

/** Returns the requested class, the current class and the target class of a modification in progress. */
export function attributesClassesOf({ spec, status }: Readonly<PersistentVolumeClaim>): string[] {
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]
  return [...new Set(names.filter((name): name is string => Boolean(name)))]
}
