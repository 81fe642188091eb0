// Determines which pods need their volumes on their node, and which claims a pod uses. Pure.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod, PodStatus } from '../../api/kinds/pod/pod-schema.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'

/** Returns the keys of the pod's claims; none if the pod is not assigned to a node. */
export const claimsOfAssignedPod = (pod: Readonly<Pod>): string[] => (pod.spec?.nodeName ? claimsOfPod(pod) : [])

/**
 * Whether a pod still needs its volumes on its node. A pod being deleted needs them while one of its containers may run,
 * unless the node is out of service.
 */
export function needsVolumes({ metadata, spec, status }: Readonly<Pod>, isOutOfService: boolean): boolean {
  if (!spec?.nodeName || status?.phase === 'Failed' || status?.phase === 'Succeeded') return false
  if (metadata.deletionTimestamp === undefined) return true
  return mayRun(status) && !isOutOfService
}

function mayRun(status: PodStatus | undefined): boolean {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status ?? {}
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].some(
    ({ state }) => !state?.terminated && !state?.waiting,
  )
}

/** A claim with the name of a generic ephemeral volume belongs to the pod only if the pod owns it. */
export function usesClaim({ metadata, spec }: Readonly<Pod>, claim: Readonly<PersistentVolumeClaim>): boolean {
  const { name: claimName, namespace, ownerReferences = [] } = claim.metadata
  if (metadata.namespace !== namespace) return false
  return (spec?.volumes ?? []).some(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return persistentVolumeClaim.claimName === claimName
    const isOwned = () => ownerReferences.some(({ controller, uid }) => controller && uid === metadata.uid)
    return ephemeral !== undefined && `${metadata.name}-${name}` === claimName && isOwned()
  })
}
