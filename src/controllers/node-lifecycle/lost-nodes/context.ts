// The dependencies of the lost-node controller. lost-node-controller.ts creates them.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import type { CSIStorageCapacity } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity-schema.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { Cache } from '../../../runtime/index.ts'
import type { NodeLifecycleContext } from '../context.ts'

export interface LostNodesContext
  extends Pick<
    NodeLifecycleContext,
    'client' | 'clock' | 'nodes' | 'leases' | 'pods' | 'nodeEvents' | 'heartbeats' | 'limits'
  > {
  readonly attachments: Cache<VolumeAttachment>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  readonly capacities: Cache<CSIStorageCapacity>
}
