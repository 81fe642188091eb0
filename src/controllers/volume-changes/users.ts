// Which pods use a claim, for drivers that change only volumes that are not in use.
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { ObjectKey } from '../../client/index.ts'
import type { Cache } from '../../runtime/index.ts'
import { claimsOfPod } from '../../volumes/claims-of-pod.ts'

const BY_CLAIM = 'changing: claim'

export const followUsers = (pods: Cache<Pod>): void => pods.addIndex(BY_CLAIM, claimsOfPod)

export const isInUse = (claimKey: ObjectKey, pods: Cache<Pod>): boolean =>
  pods.byIndex(BY_CLAIM, claimKey).some((pod) => !isOver(pod))

/** A pod that has ended uses nothing any more. */
export const isOver = ({ status }: Readonly<Pod>): boolean =>
  status?.phase === 'Succeeded' || status?.phase === 'Failed'
