// Rejects all nodes while another pod uses a claim of this pod that has the access mode ReadWriteOncePod.
import type { ObjectKey } from '../../../client/index.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import type { QueueingHint } from '../../framework/cluster-events.ts'
import { type Plugin, type PluginHandle, UNSIGNABLE } from '../../framework/plugin.ts'
import { SKIP, unschedulable } from '../../framework/status.ts'
import { claimChanged, claimKey, claimKeys } from '../shared-hints.ts'

const REJECTED = unschedulable({
  type: 'ReadWriteOncePodInUse',
  message:
    'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
})

/** A pod that used one of the claims left its node. */
const claimReleased: QueueingHint<'podRemoved'> = {
  on: 'podRemoved',
  scope: 'pod',
  keysOfPod: claimKeys,
  keysOfEvent: ({ claims }) => claims.map(claimKey),
}

export function createVolumeRestrictions({ caches, cluster }: PluginHandle): Plugin<PodInfo> {
  const exclusiveClaims = ({ claims }: PodInfo) =>
    claims.filter(({ key }) => caches.claims.get(key)?.spec?.accessModes?.includes('ReadWriteOncePod'))
  const otherUsers = (claim: ObjectKey, { key }: PodInfo) =>
    [...cluster.podsUsing(claim)].filter((podKey) => podKey !== key)
  return {
    name: 'VolumeRestrictions',
    events: [claimReleased, claimChanged],
    preFilter(pod) {
      const isInUse = exclusiveClaims(pod).some(({ key }) => otherUsers(key, pod).length > 0)
      return isInUse ? { code: 'Success', state: pod } : SKIP
    },
    filter: () => REJECTED,
    detailRejection: (pod) =>
      exclusiveClaims(pod).flatMap(({ key }) =>
        otherUsers(key, pod).map((podKey) => ({
          type: 'ReadWriteOncePodInUse',
          claimKey: key,
          message: `the claim ${key} has the access mode ReadWriteOncePod, and the pod ${podKey} uses it`,
        })),
      ),
    signPod: (pod) => (exclusiveClaims(pod).length > 0 ? UNSIGNABLE : undefined),
  }
}
