// The caches that the scheduler and its plugins read.
import type { FeatureGates } from '../../api/feature-gates.ts'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import { csiDriverKind } from '../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../api/kinds/csi-node/csi-node.ts'
import { csiStorageCapacityKind } from '../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { nodeKind } from '../../api/kinds/node/node.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { storageClassKind } from '../../api/kinds/storage-class/storage-class.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../api/kinds/volume-attachment/volume-attachment.ts'
import type { CacheSet } from '../../runtime/index.ts'

export type SchedulerCaches = ReturnType<typeof schedulerCaches>

export const schedulerCaches = (set: CacheSet, gates: FeatureGates) => ({
  pods: set.of(podKind),
  nodes: set.of(nodeKind),
  drivers: set.of(csiDriverKind),
  csiNodes: set.of(csiNodeKind),
  attachments: set.of(volumeAttachmentKind),
  claims: set.of(persistentVolumeClaimKind),
  volumes: set.of(persistentVolumeKind),
  classes: set.of(storageClassKind),
  /** Undefined if the feature gate is disabled. */
  capacities: gates.enabled('CSIStorageCapacity') ? set.of(csiStorageCapacityKind) : undefined,
})
