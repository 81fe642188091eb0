// A claim with ReadWriteOncePod is for one pod at a time, wherever that pod is.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { Cache } from '../../../runtime/index.ts'
import type { ClusterState } from '../../cluster/cluster-state.ts'
import { INDIFFERENT, type Plugin } from '../../plugin.ts'

export const READ_WRITE_ONCE_POD = 'VolumeRestrictions'
export const REASON_IN_USE =
  'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod'

const REFUSED = [REASON_IN_USE]

export const createReadWriteOncePod = (claims: Cache<PersistentVolumeClaim>, cluster: ClusterState): Plugin => ({
  name: READ_WRITE_ONCE_POD,
  prepare(pod) {
    const isTaken = pod.claims.some(({ key }) => {
      const isForOne = claims.get(key)?.spec?.accessModes?.includes('ReadWriteOncePod')
      return isForOne && [...cluster.podsUsing(key)].some((user) => user !== pod.key)
    })
    return isTaken ? { is: 'judge', refuses: () => REFUSED } : INDIFFERENT
  },
})
