// Who uses what: whether a pod keeps a claim, and the attributes classes a claim has to do with.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'

/** The claims a pod may keep: none until a node has been given it, as no node starts a pod whose claim is going. */
export const claimsKeptBy = (pod: Readonly<Pod>): string[] => (pod.spec?.nodeName ? claimsOfPod(pod) : [])

/**
 * Whether a pod that is on a node keeps a claim. One that has ended does so until it is deleted: its volumes may still
 * be mounted. A claim made from the pod's own template is kept only by that pod, and no longer once the node is done
 * with it: the pod may itself be waiting for the claim to go.
 */
export function keepsClaim({ metadata, spec }: Readonly<Pod>, claim: Readonly<PersistentVolumeClaim>): boolean {
  if (!spec?.nodeName || metadata.namespace !== claim.metadata.namespace) return false
  const isShutDown = metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0
  const isOwner = claim.metadata.ownerReferences?.some(({ controller, uid }) => controller && uid === metadata.uid)
  return (spec.volumes ?? []).some(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return persistentVolumeClaim.claimName === claim.metadata.name
    return ephemeral && `${metadata.name}-${name}` === claim.metadata.name && isOwner && !isShutDown
  })
}

/** The class asked for, the one in effect, and the one being moved to. */
export function attributesClassesOf({ spec, status }: Readonly<PersistentVolumeClaim>): string[] {
  const names = [
    spec?.volumeAttributesClassName,
    status?.currentVolumeAttributesClassName,
    status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ]
  return [...new Set(names.filter((name): name is string => Boolean(name)))]
}
