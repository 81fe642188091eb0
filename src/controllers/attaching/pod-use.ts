// Which pods need which volumes at their node: those that are on a node and have not ended there.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod, PodStatus } from '../../api/kinds/pod/pod-schema.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'

/** `namespace/name` of the claims of a pod that is on a node. */
export const claimsAtNode = (pod: Readonly<Pod>): string[] => (pod.spec?.nodeName ? claimsOfPod(pod) : [])

/**
 * Whether a pod still needs its volumes at its node. One that is going needs them while a container of it may run. On a
 * node that is out of service none does, and nobody is there to say so.
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

/** A claim that is called like one made from a pod's template is the pod's only if it was made for that very pod. */
export function usesClaim({ metadata, spec }: Readonly<Pod>, claim: Readonly<PersistentVolumeClaim>): boolean {
  const { name: claimName, namespace, ownerReferences = [] } = claim.metadata
  if (metadata.namespace !== namespace) return false
  return (spec?.volumes ?? []).some(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return persistentVolumeClaim.claimName === claimName
    const isMadeFor = () => ownerReferences.some(({ controller, uid }) => controller && uid === metadata.uid)
    return ephemeral !== undefined && `${metadata.name}-${name}` === claimName && isMadeFor()
  })
}
