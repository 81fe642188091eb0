// What the steps of a growth stand on, put together once by expanding.ts.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { Clock } from '../../base/clock.ts'
import type { Client } from '../../client/index.ts'
import type { CsiDriver, DriverFacts } from '../../csi/index.ts'
import type { Cache, EventRecorder, LeaderElection } from '../../runtime/index.ts'
import type { Pace } from '../volume-changes/index.ts'
import type { Answers } from './answers.ts'
import type { LoweredRequests } from './lowered-requests.ts'
import type { ExpandingSettings } from './options.ts'
import type { Room } from './room.ts'

export interface ExpandingContext {
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  /** The driver grows volumes on their nodes only. */
  readonly isNodeOnly: boolean
  readonly settings: ExpandingSettings
  readonly client: Client
  readonly clock: Clock
  readonly events: Pick<EventRecorder, 'record'>
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  /** Absent where volumes in use are no concern. */
  readonly pods?: Cache<Pod>
  /** Absent where free storage is not looked at. */
  readonly room?: Room
  /** Absent: changes wait for nothing. */
  readonly pace?: Pace
  readonly answers: Answers
  readonly lowered: LoweredRequests
}
