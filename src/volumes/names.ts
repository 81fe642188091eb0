// Annotations and finalizers by which the binder, provisioners, the scheduler and other people's programs tell each
// other about claims and volumes. Their spelling is part of the API.

/** On claims, both with the provisioner's name: the binder asks it for a volume. */
export const PROVISIONER = 'volume.kubernetes.io/storage-provisioner'
export const PROVISIONER_BETA = 'volume.beta.kubernetes.io/storage-provisioner'

/** On claims: the node of the first pod that uses it. The alpha one is read where nothing else names a node. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node'
export const SELECTED_NODE_ALPHA = 'volume.alpha.kubernetes.io/selected-node'

/** On claims, `yes`: the binding was completed once. Its presence alone decides. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed'

/** On claims and volumes, `yes`: a controller, and not a user, chose the other side. */
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller'

/** On volumes: who made it, and so who deletes it. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by'

/** On volumes of an in-tree plugin: the CSI driver that took over. */
export const MIGRATED_TO = 'pv.kubernetes.io/migrated-to'

/** On volumes that were grown while their file system was not: the size before. */
export const PRE_RESIZE_CAPACITY = 'volume.alpha.kubernetes.io/pre-resize-capacity'

/** On volumes until what is behind them is deleted: put there by external provisioners, and by those in this process. */
export const EXTERNAL_PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer'
export const IN_PROCESS_PROVISIONER_FINALIZER = 'kubernetes.io/pv-controller'

export const CLAIM_PROTECTION_FINALIZER = 'kubernetes.io/pvc-protection'
export const VOLUME_PROTECTION_FINALIZER = 'kubernetes.io/pv-protection'

/** Names of provisioners that were once part of Kubernetes itself; they never run as separate processes. */
export const IN_TREE_PREFIX = 'kubernetes.io/'

/** On claims, `true`: the last growth ended without a part for the node. Gone as soon as the next one starts. */
export const NODE_EXPANSION_NOT_REQUIRED = 'volume.kubernetes.io/node-expansion-not-required'
