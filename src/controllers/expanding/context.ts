// The dependencies of every step of an expansion, composed once by expanding.ts.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import type { DriverFacts } from '../../csi/index.ts'
import type { Cache, EventRecorder, LeaderElection, Saver } from '../../runtime/index.ts'
import type { ChangeThrottle } from '../volume-changes/index.ts'
import type { ExpandVolumeFields, ExpansionDriver } from './expansion-driver.ts'
import type { ExpansionRecords } from './expansion-records.ts'
import type { FreeCapacity } from './free-capacity.ts'
import type { LoweredRequests } from './lowered-requests.ts'
import type { ExpandingSettings } from './options.ts'

export interface ExpandingContext {
  readonly driver: ExpansionDriver
  readonly facts: DriverFacts
  /** Returns the fields that identify the volume to the driver. Throws an AttachError if CSI cannot express its access modes. */
  fieldsOf(volume: Readonly<PersistentVolume>): ExpandVolumeFields
  /** Whether the driver expands volumes only with NodeExpandVolume. */
  readonly isNodeOnly: boolean
  readonly settings: ExpandingSettings
  readonly client: Client
  readonly clock: Clock
  readonly events: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
  /** Commits writes if this process is the leader, and updates the caches of claims and volumes. */
  readonly saver: Saver
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  /** Absent if options.handlesInUse is false. */
  readonly pods?: Cache<Pod>
  /** Absent if options.checksCapacity is false. */
  readonly freeCapacity?: FreeCapacity
  /** Absent if changes are not throttled. */
  readonly throttle?: ChangeThrottle
  readonly records: ExpansionRecords
  readonly loweredRequests: LoweredRequests
}
