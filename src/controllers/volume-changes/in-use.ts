// Determines whether pods use a claim, for drivers that change a volume only while it is not in use.
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { Cache } from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'

const BY_CLAIM = 'changing: claim'

export const indexPodsByClaim = (pods: Cache<Pod>): void => pods.addIndex(BY_CLAIM, claimsOfPod)

/** Whether a pod that has not terminated uses the claim. Requires `indexPodsByClaim`. */
export const isInUse = (claimKey: ObjectKey, pods: Cache<Pod>): boolean =>
  pods.byIndex(BY_CLAIM, claimKey).some((pod) => !hasTerminated(pod))
