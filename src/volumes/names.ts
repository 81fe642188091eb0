// Annotations and finalizers of claims, volumes and classes that several components use, and the name prefix of in-tree
// provisioners. They are part of the API.

/** Annotations of claims with the name of the provisioner from which the binding controller requests a volume. */
export const PROVISIONER = 'volume.kubernetes.io/storage-provisioner'
export const PROVISIONER_BETA = 'volume.beta.kubernetes.io/storage-provisioner'

/** Annotations of claims with the node of the first consumer. The alpha annotation is read only if the other is absent. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node'
export const SELECTED_NODE_ALPHA = 'volume.alpha.kubernetes.io/selected-node'

/** Annotation of claims with the last failure to create their volume. The scheduler quotes it in the condition of the pod. */
export const LAST_FAILURE = 'provisioning.stowage.dev/last-failure'
/** Longer reasons are truncated. */
export const LAST_FAILURE_CHARACTERS_MAX = 400

/** Annotation of StorageClasses with their placement policy (placement.ts). CAPACITY_PREFERENCE is its former name. */
export const PLACEMENT = 'stowage.dev/placement'
export const CAPACITY_PREFERENCE = 'scheduling.stowage.dev/capacity'

/** Annotation of StorageClasses with the policy for volumes whose only copy was on a lost node (lost-volume-policy.ts). */
export const LOST_VOLUME_POLICY = 'stowage.dev/lost-volume-policy'

/** Annotation of claims whose binding was completed. Only its presence matters; the value is `yes`. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed'

/** Annotation of claims and volumes whose counterpart a controller chose, not a user. The value is `yes`. */
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller'

/** Annotation of volumes with the provisioner that created the volume and therefore deletes it. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by'

/** Annotation of volumes of an in-tree plugin with the CSI driver that replaces the plugin. */
export const MIGRATED_TO = 'pv.kubernetes.io/migrated-to'

/** Annotation of volumes whose file system is not expanded yet, with the size before the expansion. */
export const PRE_RESIZE_CAPACITY = 'volume.alpha.kubernetes.io/pre-resize-capacity'

/** Finalizers of volumes until their storage is deleted, set by external and in-process provisioners respectively. */
export const EXTERNAL_PROVISIONER_FINALIZER = 'external-provisioner.volume.kubernetes.io/finalizer'
export const IN_PROCESS_PROVISIONER_FINALIZER = 'kubernetes.io/pv-controller'

export const CLAIM_PROTECTION_FINALIZER = 'kubernetes.io/pvc-protection'
export const VOLUME_PROTECTION_FINALIZER = 'kubernetes.io/pv-protection'

/** Name prefix of in-tree provisioners. */
export const IN_TREE_PREFIX = 'kubernetes.io/'

/** Annotation of claims whose last expansion needed no step on the node. The next expansion removes it. */
export const NODE_EXPANSION_NOT_REQUIRED = 'volume.kubernetes.io/node-expansion-not-required'
