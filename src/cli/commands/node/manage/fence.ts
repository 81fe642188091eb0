// Adds the out-of-service taint to a node whose machine is off: its pods are then removed and its volumes detached by force.
// Removes the taint when the node has returned and no longer uses the volumes of removed pods.
import { isFenced, isOutOfService, OUT_OF_SERVICE_TAINT, QUARANTINE_TAINT } from '../../../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../../../api/kinds/node/node.ts'
import { UsageError } from '../../../../base/usage-error.ts'
import type { Client } from '../../../../client/index.ts'
import type { Snapshot } from '../../../../diagnosis/index.ts'
import { attachedVolumeNameOf } from '../../../../volumes/attachment-names.ts'
import { findPods, findVolumeNames, isReady, type StoredNode } from './node-facts.ts'

const TAINT = { key: OUT_OF_SERVICE_TAINT, value: 'nodeshutdown', effect: 'NoExecute' }

/**
 * Throws UsageError if the node is ready, or if the user has not confirmed that its machine is off: pods that run could write to
 * volumes that are attached elsewhere.
 */
export function checkCanFence(node: StoredNode, isConfirmedOff: boolean): void {
  const { name } = node.metadata
  const reason = refusalToFence(node)
  if (reason !== undefined) throw new UsageError(reason)
  if (!isConfirmedOff)
    throw new UsageError(
      `Node "${name}" may still run without a connection to the API server, and its pods may still write. Power the machine off, then confirm it with --confirm-off.`,
    )
}

/** Returns why the node must not be fenced, whatever the user confirms. */
export function refusalToFence(node: StoredNode): string | undefined {
  // A node that has returned reports that it is ready, although it still has the taint.
  return isReady(node)
    ? `Node "${node.metadata.name}" reports that it is ready, so its pods run and can write to their volumes. Power the machine off first.`
    : undefined
}

export async function fenceNode(client: Client, node: StoredNode, { dryRun }: { dryRun: boolean }): Promise<void> {
  if (isOutOfService(node)) return
  const taints = [...(node.spec?.taints ?? []), TAINT]
  await setTaints(client, node, taints, dryRun)
}

/**
 * Returns the volumes that the node still uses although none of its pods does: the pods were removed while the node was out of
 * service, and may run elsewhere now.
 */
export function findStaleVolumes(node: StoredNode, snapshot: Snapshot): string[] {
  const { name } = node.metadata
  const ownVolumes = new Set(findPods(snapshot, name).flatMap((pod) => findVolumeNames(pod, snapshot)))
  const ownNames = new Set(
    snapshot.volumes.flatMap(({ metadata, spec }) =>
      spec?.csi && ownVolumes.has(metadata.name)
        ? [attachedVolumeNameOf({ driver: spec.csi.driver, handle: spec.csi.volumeHandle })]
        : [],
    ),
  )
  return (node.status?.volumesInUse ?? []).filter((volume) => !ownNames.has(volume))
}

/** Throws UsageError unless the node has returned and has unmounted the volumes that its pods no longer use. */
export function checkCanUnfence(node: StoredNode, snapshot: Snapshot): void {
  const { name } = node.metadata
  if (!isReady(node))
    throw new UsageError(`Node "${name}" does not report that it is ready. Start its machine and its node agent first.`)
  const staleVolumes = findStaleVolumes(node, snapshot)
  if (staleVolumes.length > 0)
    throw new UsageError(
      `Node "${name}" still uses volumes of pods that were removed: ${staleVolumes.join(', ')}. Wait until its agent has unmounted them, or restart the machine.`,
    )
}

export async function unfenceNode(client: Client, node: StoredNode, { dryRun }: { dryRun: boolean }): Promise<void> {
  if (!isFenced(node)) return
  const taints = (node.spec?.taints ?? []).filter(({ key }) => key !== OUT_OF_SERVICE_TAINT && key !== QUARANTINE_TAINT)
  await setTaints(client, node, taints, dryRun)
}

function setTaints(client: Client, { metadata }: StoredNode, taints: readonly object[], dryRun: boolean) {
  const { name, resourceVersion } = metadata
  return client.patch(
    nodeKind,
    { name },
    { type: 'merge', body: { metadata: { resourceVersion }, spec: { taints } } },
    { dryRun },
  )
}
