// Rejects all nodes while another pod uses one of the pod's ReadWriteOncePod claims. A nominated pod of the same or a higher
// priority counts as a user.
import type { ObjectKey } from '../../../client/index.ts'
import type { PodInfo } from '../../cluster/pod-info.ts'
import type { QueueingHint } from '../../framework/cluster-events.ts'
import { type Plugin, type PluginHandle, UNSIGNABLE } from '../../framework/plugin.ts'
import { SKIP, unschedulable } from '../../framework/status.ts'
import { claimChanged, claimKey, claimKeys } from '../shared-hints.ts'

const REJECTION = unschedulable({
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

interface State {
  readonly pod: PodInfo
  /** The other pods that use the pod's ReadWriteOncePod claims, by claim. Claims that no other pod uses are absent. */
  readonly usersByClaim: ReadonlyMap<ObjectKey, ReadonlySet<ObjectKey>>
}

export function createVolumeRestrictions({ caches, cluster }: PluginHandle): Plugin<State> {
  const exclusiveClaims = ({ claims }: PodInfo) =>
    claims.filter(({ key }) => caches.claims.get(key)?.spec?.accessModes?.includes('ReadWriteOncePod'))

  function findUsers(pod: PodInfo): State['usersByClaim'] {
    const usersByClaim = new Map<ObjectKey, ReadonlySet<ObjectKey>>()
    for (const { key } of exclusiveClaims(pod)) {
      const nominatedPods = cluster.nominatedPods.size === 0 ? [] : cluster.nominatedPodsBefore(pod)
      const nominatedUsers = nominatedPods.filter(({ claims }) => claims.some((claim) => claim.key === key))
      const users = new Set([...cluster.podsUsing(key), ...nominatedUsers.map((user) => user.key)])
      users.delete(pod.key)
      if (users.size > 0) usersByClaim.set(key, users)
    }
    return usersByClaim
  }

  return {
    name: 'VolumeRestrictions',
    events: [claimReleased, claimChanged],
    preFilter(pod) {
      const usersByClaim = findUsers(pod)
      return usersByClaim.size > 0 ? { code: 'Success', state: { pod, usersByClaim } } : SKIP
    },
    addPod: (state, { key, claims }) => withUsers(state, claims, (users) => new Set([...users, key])),
    removePod: (state, { key, claims }) =>
      withUsers(state, claims, (users) => new Set([...users].filter((user) => user !== key))),
    filter: ({ usersByClaim }) => (isAnyInUse(usersByClaim) ? REJECTION : undefined),
    detailRejection: ({ usersByClaim }) =>
      [...usersByClaim].flatMap(([key, users]) =>
        [...users].map((podKey) => ({
          type: 'ReadWriteOncePodInUse',
          claimKey: key,
          message: `the claim ${key} has the access mode ReadWriteOncePod, and the pod ${podKey} uses it`,
        })),
      ),
    signPod: (pod) => (exclusiveClaims(pod).length > 0 ? UNSIGNABLE : undefined),
  }
}

const isAnyInUse = (usersByClaim: State['usersByClaim']): boolean => {
  for (const users of usersByClaim.values()) if (users.size > 0) return true
  return false
}

/** Returns the state with changed users of these claims. Ignores claims that the state does not contain. */
function withUsers(
  state: State,
  claims: PodInfo['claims'],
  change: (users: ReadonlySet<ObjectKey>) => ReadonlySet<ObjectKey>,
): State {
  const usersByClaim = new Map(state.usersByClaim)
  for (const { key } of claims) {
    const users = usersByClaim.get(key)
    if (users) usersByClaim.set(key, change(users))
  }
  return { ...state, usersByClaim }
}
