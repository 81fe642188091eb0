// Every kind that is served. Adding one: a declaration in ../types, rules in a file here, and a line below.
import type { Kind } from '../kind.ts'
import { volumeAttributesClassKind } from './attributes-class.ts'
import { persistentVolumeClaimKind } from './claim.ts'
import { configMapKind } from './config-map.ts'
import { csiDriverKind } from './csi-driver.ts'
import { csiNodeKind } from './csi-node.ts'
import { csiStorageCapacityKind } from './csi-storage-capacity.ts'
import { eventKind } from './event.ts'
import { eventsEventKind } from './events-event.ts'
import { FOREIGN_KINDS } from './foreign.ts'
import { leaseKind } from './lease.ts'
import { limitRangeKind } from './limit-range.ts'
import { namespaceKind } from './namespace.ts'
import { nodeKind } from './node.ts'
import { podKind } from './pod.ts'
import { resourceQuotaKind } from './resource-quota.ts'
import { REVIEW_KINDS } from './reviews.ts'
import { secretKind } from './secret.ts'
import { serviceAccountKind } from './service-account.ts'
import { storageClassKind } from './storage-class.ts'
import { persistentVolumeKind } from './volume.ts'
import { volumeAttachmentKind } from './volume-attachment.ts'

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
  leaseKind,
  eventsEventKind,
  csiDriverKind,
  csiNodeKind,
  csiStorageCapacityKind,
  storageClassKind,
  volumeAttachmentKind,
  volumeAttributesClassKind,
  ...FOREIGN_KINDS,
]
