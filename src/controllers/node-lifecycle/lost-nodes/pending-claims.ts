// Finds and releases the claims whose volumes are being provisioned on a lost node. Releasing a claim removes its selected
// node, so that the scheduler selects another node and drops its reservation, and the intent of the provisioner that ran on
// the node: only that provisioner could complete the intent. If the provisioner has created a volume, `stowage leaks` lists
// the volume once the node returns. The intent of a provisioner that runs elsewhere remains, because that provisioner continues.
import type { Stored } from '../../../api/kind.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { isConflict, isNotFound } from '../../../api/status-error.ts'
import type { Cache } from '../../../runtime/index.ts'
import { LAST_FAILURE, PROVISIONER, PROVISIONER_BETA, SELECTED_NODE } from '../../../volumes/names.ts'
import { INTENT_PREFIX, intentOf } from '../../../volumes/provisioning-intent.ts'
import type { LostNodesContext } from './context.ts'

type Claim = Readonly<Stored<PersistentVolumeClaim>>

const BY_SELECTED_NODE = 'node-lifecycle/selected-node'
const BY_INTENT = 'node-lifecycle/intent'

/** Returns the selected node of a claim without a volume. */
function selectedNodeOf({ metadata, spec }: Readonly<PersistentVolumeClaim>): string[] {
  const name = metadata.annotations?.[SELECTED_NODE]
  return name && !spec?.volumeName ? [name] : []
}

const intentsOf = ({ metadata }: Readonly<PersistentVolumeClaim>): string[] =>
  metadata.finalizers?.filter((finalizer) => finalizer.startsWith(INTENT_PREFIX)) ?? []

export function indexPendingClaims(claims: Cache<PersistentVolumeClaim>): void {
  claims.addIndex(BY_SELECTED_NODE, selectedNodeOf)
  claims.addIndex(BY_INTENT, (claim) => (intentsOf(claim).length > 0 ? [BY_INTENT] : []))
}

/** Returns the intent of the provisioner that runs on the node, if the claim has it. */
function intentOfNode(claim: Readonly<PersistentVolumeClaim>, nodeName: string): string | undefined {
  const { annotations = {} } = claim.metadata
  const provisioner = annotations[PROVISIONER] ?? annotations[PROVISIONER_BETA]
  const intent = provisioner === undefined ? undefined : intentOf(provisioner, nodeName)
  return intentsOf(claim).find((finalizer) => finalizer === intent)
}

/** Returns the claims whose selected node this is, or that the provisioner of this node has started to provision. */
export function findPendingClaims(nodeName: string, claims: Cache<PersistentVolumeClaim>): readonly Claim[] {
  const startedClaims = claims.byIndex(BY_INTENT, BY_INTENT).filter((claim) => intentOfNode(claim, nodeName))
  return [...new Set([...claims.byIndex(BY_SELECTED_NODE, nodeName), ...startedClaims])]
}

/** Whether `findPendingClaims` returns the claim for this node. */
export const isPendingOn = (claim: Readonly<PersistentVolumeClaim>, nodeName: string): boolean =>
  selectedNodeOf(claim).includes(nodeName) || intentOfNode(claim, nodeName) !== undefined

export async function releaseClaim(claim: Claim, nodeName: string, context: LostNodesContext): Promise<void> {
  const { client, claims, nodeEvents } = context
  const { namespace, name, uid, resourceVersion } = claim.metadata
  const intent = intentOfNode(claim, nodeName)
  const isSelected = selectedNodeOf(claim).includes(nodeName)
  const node = `node ${JSON.stringify(nodeName)}`
  const annotations = { [SELECTED_NODE]: null, [LAST_FAILURE]: `${node}: the node is lost` }
  const metadata = {
    uid,
    resourceVersion,
    ...(isSelected ? { annotations } : {}),
    ...(intent ? { '$deleteFromPrimitiveList/finalizers': [intent] } : {}),
  }
  try {
    const patch = { type: 'strategic', body: { metadata } } as const
    const released = await client.patch(persistentVolumeClaimKind, { namespace, name }, patch)
    if (released) claims.applyWriteResult(released) // undefined if this was a deleted claim's last finalizer
    if (isSelected && !claim.metadata.deletionTimestamp)
      nodeEvents.record(persistentVolumeClaimKind, claim, {
        type: 'Warning',
        reason: 'SelectedNodeLost',
        message: `The volume is not provisioned on ${node}, because the node is lost; the scheduler selects another node`,
      })
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error // a conflict: the claim changed, which causes another reconcile
  }
}
