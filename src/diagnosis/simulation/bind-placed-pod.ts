// Applies a placement to the caches of a simulation, in place of the API server, the binding controller and the provisioner:
// binds existing volumes, creates new ones on the node, and binds the pod to the node.
import type { Stored } from '../../api/kind.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { claimClassName } from '../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { ReservedVolume } from '../../scheduler/index.ts'
import { BIND_COMPLETED } from '../../volumes/names.ts'
import type { Claim, StoredPod } from '../cluster.ts'
import type { SnapshotCaches } from '../snapshot-caches.ts'

type Volume = Readonly<Stored<PersistentVolume>>
type NodeAffinity = NonNullable<PersistentVolume['spec']>['nodeAffinity']

export function bindPlacedPod(
  pod: StoredPod,
  { nodeName, volumes }: { readonly nodeName: string; readonly volumes: readonly ReservedVolume[] },
  caches: SnapshotCaches,
): void {
  for (const { claimKey, volumeName, reportKey } of volumes) {
    const claim = caches.claims.get(claimKey)
    if (!claim) continue
    const volume = volumeName === undefined ? undefined : caches.volumes.get(volumeName)
    bindClaim(claim, volume ?? createVolume(claim, affinityTo(nodeName, { claim, reportKey }, caches), caches), caches)
  }
  caches.pods.put({ ...pod, spec: { ...(pod.spec as NonNullable<Pod['spec']>), nodeName } })
}

/** Binds the claim and the volume, the volume first, as the binding controller does. */
export function bindClaim(claim: Claim, volume: Volume, caches: SnapshotCaches): void {
  const { namespace, name, uid } = claim.metadata
  const { capacity, ...spec } = volume.spec ?? {}
  caches.volumes.put({
    ...volume,
    spec: { ...spec, capacity, claimRef: { kind: 'PersistentVolumeClaim', namespace, name, uid } },
    status: { phase: 'Bound' },
  })
  caches.claims.put({
    ...claim,
    metadata: { ...claim.metadata, annotations: { ...claim.metadata.annotations, [BIND_COMPLETED]: 'yes' } },
    spec: { ...claim.spec, volumeName: volume.metadata.name },
    status: { phase: 'Bound', capacity },
  })
}

/** Returns the volume that the provisioner of the class creates for the claim. */
export function createVolume(claim: Claim, nodeAffinity: NodeAffinity, { classes }: SnapshotCaches): Volume {
  const { uid, resourceVersion } = claim.metadata
  const className = claimClassName(claim) ?? ''
  const { accessModes, volumeMode, resources } = claim.spec ?? {}
  const name = `pvc-${uid}`
  return {
    metadata: { name, uid: `${uid}-volume`, resourceVersion },
    spec: {
      capacity: { storage: resources?.requests?.storage ?? '0' },
      accessModes,
      volumeMode,
      storageClassName: className,
      persistentVolumeReclaimPolicy: 'Delete',
      csi: { driver: classes.get(className)?.provisioner ?? '', volumeHandle: name },
      ...(nodeAffinity ? { nodeAffinity } : {}),
    },
    status: { phase: 'Available' },
  }
}

/**
 * Returns the affinity to the node's topology as registered by the driver or, if the driver is not registered on the node,
 * to the topology of the capacity report. If that topology is empty, the volume can be used on every node.
 */
function affinityTo(
  nodeName: string,
  { claim, reportKey }: { readonly claim: Claim; readonly reportKey: string | undefined },
  { classes, csiNodes, nodes, capacities }: SnapshotCaches,
): NodeAffinity {
  const driver = classes.get(claimClassName(claim))?.provisioner
  const registered = csiNodes.get(nodeName)?.spec.drivers.find(({ name }) => name === driver)
  const labels = nodes.get(nodeName)?.metadata.labels ?? {}
  const topology = registered
    ? Object.fromEntries((registered.topologyKeys ?? []).flatMap((key) => (labels[key] ? [[key, labels[key]]] : [])))
    : (capacities?.get(reportKey)?.nodeTopology?.matchLabels ?? {})
  const matchExpressions = Object.entries(topology).map(([key, value]) => ({
    key,
    operator: 'In' as const,
    values: [value],
  }))
  return matchExpressions.length === 0 ? undefined : { required: { nodeSelectorTerms: [{ matchExpressions }] } }
}
