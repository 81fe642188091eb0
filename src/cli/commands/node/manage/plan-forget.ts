// Plans the removal of everything that belongs to a node which will not come back. Pure.
import { labelSelectorFromObject, matchesLabels } from '../../../../api/selectors.ts'
import type { Snapshot } from '../../../../diagnosis/index.ts'
import { findLocalVolumes, findPods, type StoredNode, type StoredVolume } from './node-facts.ts'

export interface ForgottenPod {
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

export interface ForgottenVolume {
  readonly volume: string
  readonly uid: string
  readonly size: string
  /** The claim that uses the volume, as NAMESPACE/NAME. */
  readonly claim?: string
  readonly claimUid?: string
}

export interface ForgetPlan {
  readonly node: string
  readonly pods: readonly ForgottenPod[]
  readonly attachments: readonly string[]
  readonly capacityObjects: readonly string[]
  readonly hasCsiNode: boolean
  /** Volumes that no other node can reach. Their data was on the node only. */
  readonly volumes: readonly ForgottenVolume[]
}

export function planForget(node: StoredNode, snapshot: Snapshot): ForgetPlan {
  const { name } = node.metadata
  return {
    node: name,
    pods: findPods(snapshot, name).map(({ metadata: { namespace = '', name: podName, uid } }) => ({
      namespace,
      name: podName,
      uid,
    })),
    attachments: snapshot.attachments.filter(({ spec }) => spec.nodeName === name).map(({ metadata }) => metadata.name),
    capacityObjects: findCapacityObjects(node, snapshot),
    hasCsiNode: snapshot.csiNodes.some(({ metadata }) => metadata.name === name),
    volumes: findLocalVolumes(snapshot, node).map((volume) => ({
      volume: volume.metadata.name,
      uid: volume.metadata.uid,
      size: volume.spec?.capacity?.storage ?? '',
      ...describeClaim(volume, snapshot),
    })),
  }
}

/** Returns the claim that uses this volume. Another claim may have the name of a deleted one. */
function describeClaim(
  { metadata, spec }: StoredVolume,
  { claims }: Snapshot,
): Pick<ForgottenVolume, 'claim' | 'claimUid'> {
  const ref = spec?.claimRef
  const claim = claims.find(
    (candidate) =>
      candidate.metadata.namespace === ref?.namespace &&
      candidate.metadata.name === ref?.name &&
      candidate.spec?.volumeName === metadata.name &&
      (!ref?.uid || ref.uid === candidate.metadata.uid),
  )
  return claim ? { claim: `${claim.metadata.namespace}/${claim.metadata.name}`, claimUid: claim.metadata.uid } : {}
}

/** Returns the capacity objects whose topology selects this node and no other. */
function findCapacityObjects(node: StoredNode, { nodes, capacities }: Snapshot): string[] {
  return capacities.flatMap(({ metadata, nodeTopology }) => {
    if (!nodeTopology) return []
    const selector = labelSelectorFromObject(nodeTopology)
    const selected = nodes.filter(({ metadata: { labels = {} } }) => matchesLabels(selector, labels))
    return selected.length === 1 && selected[0]!.metadata.name === node.metadata.name
      ? [`${metadata.namespace}/${metadata.name}`]
      : []
  })
}
