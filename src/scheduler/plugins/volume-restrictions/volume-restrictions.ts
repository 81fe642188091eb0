// Rejects all nodes while another pod uses a claim of this pod that has the access mode ReadWriteOncePod.
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

export function createVolumeRestrictions({ caches, cluster }: PluginHandle): Plugin<undefined> {
  const exclusiveClaims = ({ claims }: PodInfo) =>
    claims.filter(({ key }) => caches.claims.get(key)?.spec?.accessModes?.includes('ReadWriteOncePod'))
  return {
    name: 'VolumeRestrictions',
    events: [claimReleased, claimChanged],
    preFilter(pod) {
      const isInUse = exclusiveClaims(pod).some(({ key }) =>
        [...cluster.podsUsing(key)].some((podKey) => podKey !== pod.key),
      )
      return isInUse ? { code: 'Success', state: undefined } : SKIP
    },
    filter: () => REJECTED,
    signPod: (pod) => (exclusiveClaims(pod).length > 0 ? UNSIGNABLE : undefined),
  }
}
