// The dependencies of every step of the attach-detach controllers, composed once by attaching-controllers.ts.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { CSIDriver } from '../../api/kinds/csi-driver/csi-driver-schema.ts'
import type { CSINode } from '../../api/kinds/csi-node/csi-node-schema.ts'
import type { Node } from '../../api/kinds/node/node-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import type { Cache, EventRecorder } from '../../runtime/index.ts'
import type { Attachment } from './attachment-index.ts'
import type { AttachingMetrics } from './metrics.ts'
import type { VolumeStates } from './volume-state.ts'

export interface AttachingContext {
  readonly client: Client
  readonly clock: Clock
  readonly events: Pick<EventRecorder, 'record'>
  readonly metrics: AttachingMetrics | undefined
  readonly pods: Cache<Pod>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  readonly attachments: Cache<VolumeAttachment>
  readonly nodes: Cache<Node>
  readonly csiNodes: Cache<CSINode>
  readonly drivers: Cache<CSIDriver>
  readonly states: VolumeStates
  /** Attachments whose deletion is being or was committed. They are no longer reported as attached. */
  readonly detachingAttachments: WeakSet<Attachment>
  readonly forceDetachAfterMs: number
}
