// Describes a snapshot's nodes: their state, their pods, and the volumes that exist on one node only. Pure.
import { isFenced, isOutOfService } from '../../../../api/kinds/node/fencing.ts'
import { hasTerminated } from '../../../../api/kinds/pod/has-terminated.ts'
import type { Snapshot } from '../../../../diagnosis/index.ts'
import { claimsOfPod } from '../../../../volumes/claims-of-pod.ts'
import { isReachableFrom } from '../../../../volumes/node-affinity.ts'

export type StoredNode = Snapshot['nodes'][number]
export type StoredPod = Snapshot['pods'][number]
export type StoredVolume = Snapshot['volumes'][number]

/**
 *   Ready          the agent reports that the node works
 *   NotReady       the agent reports that it does not
 *   Unreachable    the agent has stopped reporting, or has never reported
 *   OutOfService   an administrator has confirmed that the machine is off
 *   Lost           the same, and the node has no pods or attachments left
 *   Cleaned        the same, and its lease and capacity objects are gone
 *   Quarantined    the fenced node has returned, but still has volumes mounted that its pods no longer use
 */
export type NodeState = 'Ready' | 'NotReady' | 'Unreachable' | 'OutOfService' | 'Lost' | 'Cleaned' | 'Quarantined'

const FENCED_STATES = ['Quarantined', 'Cleaned', 'Lost'] as const

export function readNodeState(node: StoredNode): NodeState {
  const { status } = node
  const isTrue = (state: string) =>
    status?.conditions?.some(({ type, status: value }) => type === state && value === 'True')
  const fencedState = isFenced(node) ? FENCED_STATES.find(isTrue) : undefined
  if (fencedState) return fencedState
  if (isOutOfService(node)) return 'OutOfService'
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')?.status
  if (ready === 'True') return 'Ready'
  return ready === 'False' ? 'NotReady' : 'Unreachable'
}

/** Returns whether the agent reports the node as ready. */
export const isReady = ({ status }: StoredNode): boolean =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true

/** Returns the pods of the node that have not terminated. */
export const findPods = ({ pods }: Pick<Snapshot, 'pods'>, nodeName: string): StoredPod[] =>
  pods.filter((pod) => pod.spec?.nodeName === nodeName && !hasTerminated(pod))

/** Returns the volumes that this node can reach and no other node can. */
export function findLocalVolumes(
  { nodes, volumes }: Pick<Snapshot, 'nodes' | 'volumes'>,
  node: StoredNode,
): StoredVolume[] {
  const identify = ({ metadata: { name, labels = {} } }: StoredNode) => ({ name, labels })
  const others = nodes.filter(({ metadata }) => metadata.name !== node.metadata.name).map(identify)
  return volumes.filter(
    (volume) =>
      volume.spec?.nodeAffinity?.required !== undefined &&
      isReachableFrom(volume, identify(node)) &&
      !others.some((other) => isReachableFrom(volume, other)),
  )
}

/** Returns the volume names of the pod's claims. */
export function findVolumeNames(pod: StoredPod, { claims }: Pick<Snapshot, 'claims'>): string[] {
  const keys = new Set(claimsOfPod(pod))
  return claims.flatMap(({ metadata: { namespace, name }, spec }) =>
    keys.has(`${namespace}/${name}`) && spec?.volumeName ? [spec.volumeName] : [],
  )
}

export const podName = ({ metadata: { namespace = '', name } }: StoredPod): string => `${namespace}/${name}`
