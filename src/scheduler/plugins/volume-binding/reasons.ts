// The reasons for which VolumeBinding rejects a node or a pod, the messages of failures in preBind, and the sentences that
// explain a rejection. Messages that kube-scheduler also reports have the same text.
import type { Reason } from '../../framework/status.ts'

export const NODE_CONFLICT: Reason = {
  type: 'VolumeNodeConflict',
  message: "node(s) didn't match PersistentVolume's node affinity",
}
export const BIND_CONFLICT: Reason = {
  type: 'VolumeBindConflict',
  message: "node(s) didn't find available persistent volumes to bind",
}
export const LABELS_MISSING: Reason = {
  type: 'TopologyLabelsMissing',
  message: 'node(s) lacked topology labels that their CSI driver has registered',
}
export const NOT_ENOUGH_SPACE: Reason = {
  type: 'NotEnoughSpace',
  message: 'node(s) did not have enough free storage',
}
export const NODE_LOST: Reason = {
  type: 'NodeLost',
  message: 'node(s) are lost, and no volume can be provisioned there',
}
export const VOLUME_NOT_FOUND: Reason = {
  type: 'VolumeNotFound',
  message: 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
}

const quote = (name: string): string => JSON.stringify(name)

export const claimNotFound = (claim: string): Reason => ({
  type: 'ClaimNotFound',
  subject: claim,
  message: `persistentvolumeclaim ${quote(claim)} not found`,
})
export const claimBeingDeleted = (claim: string): Reason => ({
  type: 'ClaimBeingDeleted',
  subject: claim,
  message: `persistentvolumeclaim ${quote(claim)} is being deleted`,
})
export const claimLost = (claim: string, volume: string): Reason => ({
  type: 'ClaimLost',
  subject: claim,
  message: `persistentvolumeclaim ${quote(claim)} bound to non-existent persistentvolume ${quote(volume)}`,
})
export const claimNotYetCreated = (claim: string): Reason => ({
  type: 'ClaimNotYetCreated',
  subject: claim,
  message: `waiting for ephemeral volume controller to create the persistentvolumeclaim ${quote(claim)}`,
  isTransient: true,
})
export const claimOfAnotherPod = (claimKey: string, podKey: string): Reason => ({
  type: 'ClaimOfAnotherPod',
  subject: claimKey,
  message: `PVC ${claimKey} was not created for pod ${podKey} (pod is not owner)`,
})

const UNBOUND_IMMEDIATE = 'pod has unbound immediate PersistentVolumeClaims'
export const UNBOUND_IMMEDIATE_CLAIMS: Reason = { type: 'UnboundImmediateClaims', message: UNBOUND_IMMEDIATE }
/** All unbound claims were created for the pod, so their volumes are normally provisioned within moments. */
export const UNBOUND_EPHEMERAL_CLAIMS: Reason = { ...UNBOUND_IMMEDIATE_CLAIMS, isTransient: true }
export const storageClassNotFound = (claim: string, className: string): Reason => ({
  type: 'StorageClassNotFound',
  subject: `${claim} ${className}`,
  message: `${UNBOUND_IMMEDIATE}: claim ${quote(claim)} names storage class ${quote(className)}, which does not exist`,
})

// Messages of failures while preBind waits for a pod's volumes.
export const podDeleted = (podKey: string): string => `pod does not exist any more: ${podKey}`
export const nodeNotFound = (node: string): string => `failed to get node ${quote(node)}: it does not exist any more`
export const nodeLost = (node: string): string => `node ${quote(node)} is lost`
export const provisioningClaimNotFound = (claim: string): string =>
  `failed to check provisioning pvc: persistentvolumeclaim ${quote(claim)} not found`
export const bindingVolumeNotFound = (volume: string): string =>
  `failed to check binding: persistentvolume ${quote(volume)} not found`
export const claimRefReset = (volume: string): string => `ClaimRef got reset for pv ${quote(volume)}`
export const selectedNodeReset = (claim: string): string => `selectedNode annotation reset for PVC ${quote(claim)}`
export const provisioningFailed = (claim: string, message?: string): string =>
  `provisioning failed for PVC ${quote(claim)}${message === undefined ? '' : `: ${message}`}`
export const volumeNodeMismatch = (volume: string, node: string): string =>
  `pv ${quote(volume)} node affinity doesn't match node ${quote(node)}: no matching NodeSelectorTerms`
export const BIND_TIMEOUT = 'context deadline exceeded'
export const SCHEDULER_STOPPING = 'the scheduler is stopping'
export const preBindFailed = (message: string): string =>
  `running PreBind plugin "VolumeBinding": binding volumes: ${message}`

// Sentences that are added to the message after every node was rejected.

export const volumeNotCreated = (claim: string, message: string): string =>
  `The volume of claim ${quote(claim)} could not be created: ${message.replace(/\.?$/, '.')}`

export const driverNotRegistered = (driver: string, claims: readonly string[]): string =>
  `No node has registered CSI driver ${quote(driver)} of claim${claims.length === 1 ? '' : 's'} ${claims.map(quote).join(', ')} in its CSINode: ` +
  "run the driver's node plugin on the nodes, or register its socket with: stowage node --driver-socket <socket>."
