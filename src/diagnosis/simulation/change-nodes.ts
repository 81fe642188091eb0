// Removes or drains nodes of a snapshot, and returns the pods that lose their node. Pure.
import { hasTerminated } from '../../api/kinds/pod/has-terminated.ts'
import type { Claim, StoredPod } from '../cluster.ts'
import type { Snapshot } from '../snapshot.ts'

interface NodeChanges {
  /** Nodes that are removed with their CSINodes, their attachments and the pods that a drain would leave on them. */
  readonly removed: ReadonlySet<string>
  /** Nodes that are cordoned and lose all pods except those of DaemonSets and static pods. */
  readonly drained: ReadonlySet<string>
}

interface ChangedNodes {
  readonly snapshot: Snapshot
  /** The evicted pods, pending and without a node. */
  readonly evictedPods: readonly StoredPod[]
  /** The evicted pods that no controller recreates, as NAMESPACE/NAME. */
  readonly uncontrolledPods: readonly string[]
}

export function changeNodes(snapshot: Snapshot, { removed, drained }: NodeChanges): ChangedNodes {
  const isOnChangedNode = ({ spec }: StoredPod) =>
    spec?.nodeName !== undefined && (removed.has(spec.nodeName) || drained.has(spec.nodeName))
  const evicted = snapshot.pods.filter((pod) => isOnChangedNode(pod) && !hasTerminated(pod) && !staysOnNode(pod))
  const evictedUids = new Set(evicted.map(({ metadata }) => metadata.uid))
  const isOnRemovedNode = ({ spec }: StoredPod) => spec?.nodeName !== undefined && removed.has(spec.nodeName)
  const ephemeralClaims = snapshot.claims.filter(({ metadata }) =>
    metadata.ownerReferences?.some(({ uid, controller }) => controller === true && evictedUids.has(uid)),
  )
  const ephemeralUids = new Set(ephemeralClaims.map(({ metadata }) => metadata.uid))
  const evictedPods = evicted.map(withoutNode)
  return {
    snapshot: {
      ...snapshot,
      nodes: snapshot.nodes
        .filter(({ metadata }) => !removed.has(metadata.name))
        .map((node) =>
          drained.has(node.metadata.name) ? { ...node, spec: { ...node.spec, unschedulable: true } } : node,
        ),
      csiNodes: snapshot.csiNodes.filter(({ metadata }) => !removed.has(metadata.name)),
      attachments: snapshot.attachments.filter(({ spec }) => !removed.has(spec.nodeName)),
      pods: [
        ...snapshot.pods.filter((pod) => !evictedUids.has(pod.metadata.uid) && !isOnRemovedNode(pod)),
        ...evictedPods,
      ],
      // The claims of ephemeral volumes are deleted with the pod, and created again for the new one.
      claims: snapshot.claims.map((claim) => (ephemeralUids.has(claim.metadata.uid) ? withoutVolume(claim) : claim)),
      volumes: snapshot.volumes.filter(({ spec }) => !ephemeralUids.has(spec?.claimRef?.uid ?? '')),
    },
    evictedPods,
    uncontrolledPods: evicted
      .filter((pod) => controllerOf(pod) === undefined)
      .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
  }
}

const controllerOf = ({ metadata }: StoredPod) => metadata.ownerReferences?.find(({ controller }) => controller)

/** Whether a drain leaves the pod on its node: the pods of DaemonSets, and static pods, whose owner is the node. */
const staysOnNode = (pod: StoredPod): boolean => ['DaemonSet', 'Node'].includes(controllerOf(pod)?.kind ?? '')

const withoutNode = (pod: StoredPod): StoredPod => ({
  ...pod,
  spec: { ...pod.spec!, nodeName: undefined },
  status: { phase: 'Pending' },
})

const withoutVolume = (claim: Claim): Claim => ({
  ...claim,
  metadata: { ...claim.metadata, annotations: {} },
  spec: { ...claim.spec, volumeName: undefined },
  status: { phase: 'Pending' },
})
