// Annotations and finalizers on claims and volumes that the binder, provisioners, the scheduler and third-party programs
// share. Their spelling is part of the API.

/** On claims, both with the provisioner's name: the binder requests a volume from this provisioner. */
export const PROVISIONER = 'volume.kubernetes.io/storage-provisioner'
export const PROVISIONER_BETA = 'volume.beta.kubernetes.io/storage-provisioner'

/** On claims: the node of the first pod that uses it. The alpha spelling is read only where the other is absent. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node'
export const SELECTED_NODE_ALPHA = 'volume.alpha.kubernetes.io/selected-node'

/** On claims, `yes`: the binding was completed once. Its presence alone counts. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed'

/** On claims and volumes, `yes`: a controller, not a user, chose the other side. */
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller'

/** On volumes: the provisioner that created the volume and therefore deletes it. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by'

/** On volumes of an in-tree plugin: the CSI driver that replaces the plugin. */
export const MIGRATED_TO = 'pv.kubernetes.io/migrated-to'

/** On volumes that were expanded before their file system was: the size before. */
export const PRE_RESIZE_CAPACITY = 'volume.alpha.kubernetes.io/pre-resize-capacity'

/** On volumes until their storage is deleted: set by external provisioners, and by those in this process. */
export const EXTERNAL_PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer'
export const IN_PROCESS_PROVISIONER_FINALIZER = 'kubernetes.io/pv-controller'

export const CLAIM_PROTECTION_FINALIZER = 'kubernetes.io/pvc-protection'
export const VOLUME_PROTECTION_FINALIZER = 'kubernetes.io/pv-protection'

/** Prefix of provisioners that were once part of Kubernetes itself; they never run as separate processes. */
export const IN_TREE_PREFIX = 'kubernetes.io/'

/** On claims, `true`: the last expansion ended without a step on the node. Removed when the next one starts. */
export const NODE_EXPANSION_NOT_REQUIRED = 'volume.kubernetes.io/node-expansion-not-required'
