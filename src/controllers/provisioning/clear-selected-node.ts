// Removes the selected node of a claim whose volume cannot be created there, so that the scheduler selects another one. The
// annotation last-failure keeps the reason, which the scheduler shows in the pod's status.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { isConflict, isNotFound } from '../../api/status-error.ts'
import type { Claim } from '../../volumes/matching.ts'
import { LAST_FAILURE, LAST_FAILURE_CHARACTERS_MAX, SELECTED_NODE } from '../../volumes/names.ts'
import type { ProvisioningContext } from './context.ts'
import { hasFinalizer, refOf } from './intent.ts'

/**
 * Removes the selected node, and the finalizer unless a volume may exist. Does nothing if the claim was deleted or has another
 * node by now. Returns false if the claim changed between the read and the write.
 */
export async function clearSelectedNode(
  claim: Claim,
  {
    node,
    volumeMayExist,
    message,
  }: { readonly node: string; readonly volumeMayExist: boolean; readonly message: string },
  { client, claims, intentFinalizer }: ProvisioningContext,
): Promise<boolean> {
  try {
    const current = await client.get(persistentVolumeClaimKind, refOf(claim))
    if (current.metadata.uid !== claim.metadata.uid || current.metadata.annotations?.[SELECTED_NODE] !== node)
      return true
    const { uid, resourceVersion } = current.metadata
    const metadata = {
      uid,
      resourceVersion,
      annotations: { [SELECTED_NODE]: null, [LAST_FAILURE]: failureText(node, message) },
      ...(volumeMayExist || !hasFinalizer(current, intentFinalizer)
        ? {}
        : { '$deleteFromPrimitiveList/finalizers': [intentFinalizer] }),
    }
    const patched = await client.patch(persistentVolumeClaimKind, refOf(claim), {
      type: 'strategic',
      body: { metadata },
    })
    if (patched) claims.applyWriteResult(patched)
    return true
  } catch (error) {
    if (isNotFound(error)) return true
    if (isConflict(error)) return false
    throw error
  }
}

function failureText(node: string, message: string): string {
  const text = `node ${JSON.stringify(node)}: ${message}`
  return text.length > LAST_FAILURE_CHARACTERS_MAX ? `${text.slice(0, LAST_FAILURE_CHARACTERS_MAX)}…` : text
}
