// Removes the objects of a node that will not come back (plan-forget.ts). Marks the node as out of service first, so that the
// controllers detach its volumes by force. Each step can be repeated, so the command continues after an interruption.

import type { Kind } from '../../../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../../../api/kinds/claim/claim.ts'
import { csiNodeKind } from '../../../../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { leaseKind } from '../../../../api/kinds/lease/lease.ts'
import { nodeKind } from '../../../../api/kinds/node/node.ts'
import { podKind } from '../../../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../../api/kinds/volume-attachment/volume-attachment.ts'
import { isConflict, isNotFound } from '../../../../api/status-error.ts'
import type { Clock } from '../../../../base/clock.ts'
import { type Client, type ObjectRef, refOfKey } from '../../../../client/index.ts'
import { fenceNode } from './fence.ts'
import type { StoredNode } from './node-facts.ts'
import type { ForgetPlan, ForgottenVolume } from './plan-forget.ts'

const LEASE_NAMESPACE = 'kube-node-lease'
const POLL_MS = 500

export interface ForgetDeps {
  readonly client: Client
  readonly clock: Clock
  readonly signal: AbortSignal
}

export interface ForgetResult {
  /** Whether all objects of the node are deleted, including the volumes that no other node can reach. */
  readonly isComplete: boolean
  /** Attachments whose driver has not confirmed the detach in time. The node is kept until they are deleted. */
  readonly remainingAttachments: readonly string[]
}

export async function forgetNode(
  node: StoredNode,
  plan: ForgetPlan,
  options: { readonly timeoutMs: number; readonly deletesVolumes: boolean },
  { client, clock, signal }: ForgetDeps,
): Promise<ForgetResult> {
  await fenceNode(client, node, { dryRun: false })
  for (const { uid, ...ref } of plan.pods) await remove(client, podKind, ref, { gracePeriodSeconds: 0, uid })
  for (const name of plan.attachments) await remove(client, volumeAttachmentKind, { name })
  const deadlineMs = clock.monotonicMs() + options.timeoutMs
  let remainingAttachments = await findAttachments(client, plan.node)
  while (remainingAttachments.length > 0) {
    if (clock.monotonicMs() >= deadlineMs) return { isComplete: false, remainingAttachments }
    await clock.sleep(POLL_MS, signal)
    remainingAttachments = await findAttachments(client, plan.node)
  }
  if (options.deletesVolumes) for (const volume of plan.volumes) await deleteVolume(client, volume)
  for (const key of plan.capacityObjects) await remove(client, csiStorageCapacityKind, refOfKey(key))
  await remove(client, csiNodeKind, { name: plan.node })
  await remove(client, leaseKind, { namespace: LEASE_NAMESPACE, name: plan.node })
  await remove(client, nodeKind, { name: plan.node })
  return { isComplete: options.deletesVolumes || plan.volumes.length === 0, remainingAttachments: [] }
}

const findAttachments = async (client: Client, nodeName: string): Promise<string[]> =>
  (await client.list(volumeAttachmentKind)).items
    .filter(({ spec }) => spec.nodeName === nodeName)
    .map(({ metadata }) => metadata.name)

/** Deletes the claim and the volume. No driver can delete the storage, so the volume's finalizers are removed. */
async function deleteVolume(client: Client, { volume, uid, claim, claimUid }: ForgottenVolume): Promise<void> {
  if (claim !== undefined) await remove(client, persistentVolumeClaimKind, refOfKey(claim), { uid: claimUid })
  await remove(client, persistentVolumeKind, { name: volume }, { uid })
  try {
    const body = { metadata: { uid, finalizers: null } }
    await client.patch(persistentVolumeKind, { name: volume }, { type: 'merge', body })
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error // a conflict: another object has the name
  }
}

async function remove(
  client: Client,
  kind: Kind,
  ref: ObjectRef,
  request: { gracePeriodSeconds?: number; uid?: string } = {},
): Promise<void> {
  try {
    await client.delete(kind, ref, request)
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error // a conflict: another object has the name
  }
}
