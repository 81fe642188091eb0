// Why volumes keep a pod from a node, in the words that clients know.

export const REASON_PLACE = "node(s) didn't match PersistentVolume's node affinity"
export const REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
export const REASON_NO_SPACE = 'node(s) did not have enough free storage'
export const REASON_LOST = 'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)'

export const REASON_IMMEDIATE = 'pod has unbound immediate PersistentVolumeClaims'

const quoted = (name: string): string => JSON.stringify(name)

export const claimNotFound = (claim: string): string => `persistentvolumeclaim ${quoted(claim)} not found`
export const claimIsDeleted = (claim: string): string => `persistentvolumeclaim ${quoted(claim)} is being deleted`
export const claimIsLost = (claim: string, volume: string): string =>
  `persistentvolumeclaim ${quoted(claim)} bound to non-existent persistentvolume ${quoted(volume)}`
export const claimIsToCome = (claim: string): string =>
  `waiting for ephemeral volume controller to create the persistentvolumeclaim ${quoted(claim)}`
export const claimIsForeign = (claimKey: string, podKey: string): string =>
  `PVC ${claimKey} was not created for pod ${podKey} (pod is not owner)`

// While the volumes of a pod that has been placed are being bound.
export const podIsGone = (podKey: string): string => `pod does not exist any more: ${podKey}`
export const nodeIsGone = (node: string): string => `failed to get node ${quoted(node)}: it does not exist any more`
export const claimIsGone = (claim: string): string =>
  `failed to check provisioning pvc: persistentvolumeclaim ${quoted(claim)} not found`
export const volumeIsGone = (volume: string): string =>
  `failed to check binding: persistentvolume ${quoted(volume)} not found`
export const claimRefReset = (volume: string): string => `ClaimRef got reset for pv ${quoted(volume)}`
export const selectedNodeReset = (claim: string): string => `selectedNode annotation reset for PVC ${quoted(claim)}`
export const provisioningFailed = (claim: string): string => `provisioning failed for PVC ${quoted(claim)}`
export const volumeIsElsewhere = (volume: string, node: string): string =>
  `pv ${quoted(volume)} node affinity doesn't match node ${quoted(node)}: no matching NodeSelectorTerms`
export const BOUND_TOO_LATE = 'context deadline exceeded'
export const duringBinding = (why: string): string => `running PreBind plugin "VolumeBinding": binding volumes: ${why}`
