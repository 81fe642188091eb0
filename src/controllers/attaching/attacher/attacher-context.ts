// The dependencies of every step of the attacher, composed once by attacher.ts.
import type { CSINode } from '../../../api/kinds/csi-node/csi-node-schema.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { Clock } from '../../../base/clock.ts'
import type { Client } from '../../../client/index.ts'
import type { CsiDriver, DriverFacts } from '../../../csi/index.ts'
import type { Cache, LeaderElection } from '../../../runtime/index.ts'
import type { AttacherSettings } from './options.ts'
import type { VolumeLocks } from './volume-locks.ts'

export interface AttacherContext {
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly settings: AttacherSettings
  readonly finalizer: string
  readonly canPublish: boolean
  readonly client: Client
  readonly clock: Clock
  readonly election: Pick<LeaderElection, 'assertStillLeader'> | undefined
  readonly attachments: Cache<VolumeAttachment>
  readonly volumes: Cache<PersistentVolume>
  readonly csiNodes: Cache<CSINode>
  readonly locks: VolumeLocks
  /** Names of attachments to publish again although they are attached, because the driver does not list them as published. */
  readonly unlistedNames: Set<string>
}
