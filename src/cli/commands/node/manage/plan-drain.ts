// Plans a drain: which pods of a node move to other nodes, which stay, and what would be lost. Pure.
import type { Snapshot } from '../../../../diagnosis/index.ts'
import { findLocalVolumes, findPods, findVolumeNames, podName, type StoredNode, type StoredPod } from './node-facts.ts'

export interface DrainFlags {
  /** Also evict pods that no controller recreates. */
  readonly force: boolean
  /** Also evict pods whose volumes exist on this node only: their replacements stay Pending until the node is back. */
  readonly evictLocal: boolean
  /** Also evict pods with emptyDir volumes, whose data is lost. */
  readonly deleteEmptyDirData: boolean
}

export interface DrainPod {
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly action: 'evict' | 'wait' | 'keep'
  /** Why the pod stays or is already leaving, or what is lost if it is evicted. */
  readonly message?: string
  /** The flags with which the pod would be evicted, separated by spaces. */
  readonly flag?: string
}

export interface DrainPlan {
  readonly node: string
  readonly isCordoned: boolean
  readonly pods: readonly DrainPod[]
}

export function planDrain(node: StoredNode, snapshot: Snapshot, flags: DrainFlags): DrainPlan {
  const nodeName = node.metadata.name
  const localVolumeNames = new Set(findLocalVolumes(snapshot, node).map(({ metadata }) => metadata.name))
  const pods = findPods(snapshot, nodeName).sort((a, b) => podName(a).localeCompare(podName(b)))
  return {
    node: nodeName,
    isCordoned: node.spec?.unschedulable === true,
    pods: pods.map((pod) => {
      const podLocalVolumes = findVolumeNames(pod, snapshot).filter((volume) => localVolumeNames.has(volume))
      const { namespace = '', name, uid } = pod.metadata
      return { namespace, name, uid, ...planPod(pod, podLocalVolumes, flags) }
    }),
  }
}

function planPod(
  pod: StoredPod,
  localVolumes: readonly string[],
  flags: DrainFlags,
): Pick<DrainPod, 'action' | 'message' | 'flag'> {
  const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller)
  if (owner?.kind === 'DaemonSet')
    return { action: 'keep', message: 'its DaemonSet would create it again on this node' }
  if (owner?.kind === 'Node') return { action: 'keep', message: 'the pod is a static pod of the node' }
  if (pod.metadata.deletionTimestamp) return { action: 'wait', message: 'the pod is being deleted' }
  const losses: { readonly message: string; readonly flag: string; readonly isAccepted: boolean }[] = []
  if (!owner) losses.push({ message: 'no controller creates it again', flag: '--force', isAccepted: flags.force })
  if (localVolumes.length > 0)
    losses.push({
      message: `${localVolumes.join(', ')} ${localVolumes.length === 1 ? 'exists' : 'exist'} on this node only, so the pod cannot run elsewhere`,
      flag: '--evict-local',
      isAccepted: flags.evictLocal,
    })
  if (pod.spec?.volumes?.some(({ emptyDir }) => emptyDir))
    losses.push({
      message: 'the data of its emptyDir volumes is lost',
      flag: '--delete-emptydir-data',
      isAccepted: flags.deleteEmptyDirData,
    })
  if (losses.length === 0) return { action: 'evict' }
  const message = losses.map((loss) => loss.message).join('; ')
  const missing = losses.filter(({ isAccepted }) => !isAccepted)
  if (missing.length === 0) return { action: 'evict', message }
  return { action: 'keep', message, flag: missing.map(({ flag }) => flag).join(' ') }
}
