// Lists the kinds that every API server serves; api-server.ts adds those of the group stowage.dev. To add one, create a folder
// with <kind>-schema.ts for its schema and <kind>.ts for its declaration, and add it to this list.
import type { Kind } from '../kind.ts'
import { volumeAttributesClassKind } from './attributes-class/attributes-class.ts'
import { certificateSigningRequestKind } from './certificate-signing-request/certificate-signing-request.ts'
import { persistentVolumeClaimKind } from './claim/claim.ts'
import { configMapKind } from './config-map/config-map.ts'
import { controllerRevisionKind } from './controller-revision/controller-revision.ts'
import { csiDriverKind } from './csi-driver/csi-driver.ts'
import { csiNodeKind } from './csi-node/csi-node.ts'
import { csiStorageCapacityKind } from './csi-storage-capacity/csi-storage-capacity.ts'
import { eventKind } from './event/event.ts'
import { eventsEventKind } from './event/events-event.ts'
import { FOREIGN_KINDS } from './foreign.ts'
import { leaseKind } from './lease/lease.ts'
import { limitRangeKind } from './limit-range/limit-range.ts'
import { namespaceKind } from './namespace/namespace.ts'
import { nodeKind } from './node/node.ts'
import { podKind } from './pod/pod.ts'
import { priorityClassKind } from './priority-class/priority-class.ts'
import { clusterRoleKind } from './rbac/cluster-role.ts'
import { clusterRoleBindingKind } from './rbac/cluster-role-binding.ts'
import { roleKind } from './rbac/role.ts'
import { roleBindingKind } from './rbac/role-binding.ts'
import { resourceQuotaKind } from './resource-quota/resource-quota.ts'
import { REVIEW_KINDS } from './reviews/reviews.ts'
import { secretKind } from './secret/secret.ts'
import { serviceAccountKind } from './service-account/service-account.ts'
import { statefulSetKind } from './stateful-set/stateful-set.ts'
import { storageClassKind } from './storage-class/storage-class.ts'
import { persistentVolumeKind } from './volume/volume.ts'
import { volumeAttachmentKind } from './volume-attachment/volume-attachment.ts'

export const ALL_KINDS: readonly Kind[] = [
  configMapKind,
  eventKind,
  limitRangeKind,
  namespaceKind,
  nodeKind,
  persistentVolumeClaimKind,
  persistentVolumeKind,
  podKind,
  resourceQuotaKind,
  secretKind,
  serviceAccountKind,
  ...REVIEW_KINDS,
  controllerRevisionKind,
  statefulSetKind,
  certificateSigningRequestKind,
  leaseKind,
  eventsEventKind,
  clusterRoleBindingKind,
  clusterRoleKind,
  roleBindingKind,
  roleKind,
  priorityClassKind,
  csiDriverKind,
  csiNodeKind,
  csiStorageCapacityKind,
  storageClassKind,
  volumeAttachmentKind,
  volumeAttributesClassKind,
  ...FOREIGN_KINDS,
]
