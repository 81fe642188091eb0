// Reads the input of plan-lost-node.ts from the caches. For a fenced node, the cost grows with the objects of this node, the
// claims that are being provisioned, the nodes, and the capacity objects, of which there is one for each topology segment and
// class.
import type { Stored } from '../../../api/kind.ts'
import type { CSIStorageCapacity } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import { isFenced } from '../../../api/kinds/node/fencing.ts'
import type { Node } from '../../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import type { VolumeAttachment } from '../../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import { labelSelectorFromObject, matchesLabels } from '../../../api/selectors.ts'
import type { Cache } from '../../../runtime/index.ts'
import { attachedVolumeNameOf } from '../../../volumes/attachment-names.ts'
import { claimsOfPod } from '../../../volumes/claims-of-pod.ts'
import { NODE_LEASE_NAMESPACE } from '../context.ts'
import { podsOnNode } from '../remove-lost-pods.ts'
import { evictingTaints, tolerationMs } from '../taints.ts'
import type { LostNodesContext } from './context.ts'
import { findPendingClaims } from './pending-claims.ts'
import type { LostNodeFacts } from './plan-lost-node.ts'

const ATTACHMENTS_BY_NODE = 'node-lifecycle/node'

export const indexAttachments = (attachments: Cache<VolumeAttachment>): void =>
  attachments.addIndex(ATTACHMENTS_BY_NODE, ({ spec }) => [spec.nodeName])

export function readFacts(node: Readonly<Stored<Node>>, context: LostNodesContext): LostNodeFacts {
  const { name } = node.metadata
  const isSilent = msUntilSilent(name, context) <= 0
  if (!isFenced(node))
    return { node, isSilent, leavingPodCount: 0, attachmentCount: 0, ownObjectCount: 0, staleVolumes: [] }
  const pods = podsOnNode(context.pods, name)
  // Keep the lease of an agent that still renews it: the agent is about to report.
  const hasLease = isSilent && context.leases.get({ namespace: NODE_LEASE_NAMESPACE, name }) !== undefined
  return {
    node,
    isSilent,
    leavingPodCount: pods.filter((pod) => isLeaving(pod, node)).length,
    attachmentCount: context.attachments.byIndex(ATTACHMENTS_BY_NODE, name).length,
    ownObjectCount:
      (hasLease ? 1 : 0) + findOwnCapacities(node, context).length + findPendingClaims(name, context.claims).length,
    staleVolumes: findStaleVolumes(node, pods, context),
  }
}

/** Returns the time until the node counts as silent if it does not report. */
export const msUntilSilent = (name: string, { heartbeats, limits }: LostNodesContext): number =>
  limits.monitorGraceMs - heartbeats.silenceMs(name)

const isLeaving = ({ metadata, spec }: Readonly<Pod>, node: Readonly<Node>): boolean =>
  metadata.deletionTimestamp !== undefined ||
  tolerationMs(evictingTaints(node), spec?.tolerations) < Number.POSITIVE_INFINITY

/** Returns the capacity objects whose topology selects this node and no other. */
export function findOwnCapacities(
  node: Readonly<Stored<Node>>,
  { capacities, nodes }: LostNodesContext,
): readonly Readonly<Stored<CSIStorageCapacity>>[] {
  return capacities.list().filter(({ nodeTopology }) => {
    if (!nodeTopology || !selects(nodeTopology, node)) return false
    return nodes.list().every((other) => other.metadata.name === node.metadata.name || !selects(nodeTopology, other))
  })
}

function selects(nodeTopology: object, { metadata: { labels = {} } }: Readonly<Node>): boolean {
  try {
    return matchesLabels(labelSelectorFromObject(nodeTopology), labels)
  } catch {
    return false // the selector is invalid
  }
}

/** Returns the volumes that the agent reports to be in use and that none of the node's pods use. */
function findStaleVolumes(
  { status }: Readonly<Node>,
  pods: readonly Readonly<Stored<Pod>>[],
  { claims, volumes }: LostNodesContext,
): string[] {
  const volumesInUse = status?.volumesInUse ?? []
  if (volumesInUse.length === 0) return []
  const namesUsedByPods = new Set(
    pods.flatMap(claimsOfPod).flatMap((key) => {
      const csi = volumes.get(claims.get(key)?.spec?.volumeName ?? '')?.spec?.csi
      return csi ? [attachedVolumeNameOf({ driver: csi.driver, handle: csi.volumeHandle })] : []
    }),
  )
  return volumesInUse.filter((volume) => !namesUsedByPods.has(volume))
}
