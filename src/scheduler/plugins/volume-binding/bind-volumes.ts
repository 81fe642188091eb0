// Writes the plan in preBind: the claimRef of each chosen volume, and the selected node of each claim to provision. The
// binding and provisioning controllers complete the binding; binding-waits.ts waits for them.
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { annotationOf } from '../../../api/kinds/shared/class-names.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { isReservedFor } from '../../../volumes/matching.ts'
import { BOUND_BY_CONTROLLER, LAST_FAILURE, SELECTED_NODE } from '../../../volumes/names.ts'
import type { PluginHandle } from '../../framework/plugin.ts'
import type { NodePlan } from './node-planner.ts'

/** Returns the part of a merge patch that removes the reason of an earlier failure, because a new attempt begins. */
export const lastFailureRemoval = (claim: Readonly<PersistentVolumeClaim>): Record<string, null> =>
  annotationOf(claim, LAST_FAILURE) === undefined ? {} : { [LAST_FAILURE]: null }

/**
 * Writes volumes first, then claims. Each write is conditional on the resourceVersion that was evaluated. Earlier writes
 * are not reverted if a later one fails: the next attempt continues from them.
 */
export async function bindVolumes(
  { bindings, provisions }: NodePlan,
  nodeName: string,
  handle: PluginHandle,
): Promise<void> {
  const { client, caches, write } = handle
  for (const { claim, volume } of bindings) {
    const { namespace, name, uid, resourceVersion } = claim.claim.metadata
    if (volume.spec?.claimRef?.uid === uid) continue
    const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion }
    const isChosenByScheduler = !isReservedFor(volume, claim.claim)
    const annotations = isChosenByScheduler ? { annotations: { [BOUND_BY_CONTROLLER]: 'yes' } } : {}
    const metadata = { uid: volume.metadata.uid, resourceVersion: volume.metadata.resourceVersion, ...annotations }
    const body = { metadata, spec: { claimRef } }
    const ref = { name: volume.metadata.name }
    caches.volumes.applyWriteResult(await write(() => client.patch(persistentVolumeKind, ref, { type: 'merge', body })))
  }
  for (const { claim } of provisions) {
    if (claim.selectedNode === nodeName) continue
    const { namespace, name, uid, resourceVersion } = claim.claim.metadata
    const annotations = { [SELECTED_NODE]: nodeName, ...lastFailureRemoval(claim.claim) }
    const body = { metadata: { uid, resourceVersion, annotations } }
    const ref = { name, namespace }
    caches.claims.applyWriteResult(
      await write(() => client.patch(persistentVolumeClaimKind, ref, { type: 'merge', body })),
    )
  }
}
