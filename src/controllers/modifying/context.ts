// The dependencies of every step of a modification, composed once by modifying.ts.
import type { FeatureGates } from '../../api/feature-gates.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { DriverFacts } from '../../csi/index.ts'
import type { Cache, EventRecorder, LeaderElection, Saver } from '../../runtime/index.ts'
import type { ChangeThrottle } from '../volume-changes/index.ts'
import type { LastResponses } from './last-responses.ts'
import type { ModifyingMetrics } from './metrics.ts'
import type { ModificationDriver } from './modification-driver.ts'
import type { ModifyingSettings } from './options.ts'
import type { ClassLookup } from './situation.ts'
import type { StorageClassReader } from './storage-class-reader.ts'

export interface ModifyingContext {
  readonly driver: ModificationDriver
  readonly facts: DriverFacts
  /** Returns the ID of the volume in the driver. */
  volumeIdOf(volume: Readonly<PersistentVolume>): string
  readonly gates: FeatureGates
  readonly settings: ModifyingSettings
  readonly client: Client
  readonly clock: Clock
  readonly log: Logger
  readonly events: Pick<EventRecorder, 'record'>
  readonly metrics?: ModifyingMetrics
  readonly election?: Pick<LeaderElection, 'assertStillLeader'>
  /** Commits writes if this process is the leader, and updates the caches of claims and volumes. */
  readonly saver: Saver
  /** Absent if changes are not throttled. */
  readonly throttle?: ChangeThrottle
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  /** Absent if options.handlesInUse is false. */
  readonly pods?: Cache<Pod>
  readonly responses: LastResponses
  readonly readStorageClass: StorageClassReader
  lookUpClass(name: string): ClassLookup
}
