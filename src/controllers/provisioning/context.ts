// The dependencies of reconciling claims and volumes. provisioning-controllers.ts creates one context per provisioner.
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import type { VolumeAttachment } from '../../api/kinds/volume-attachment/volume-attachment-schema.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client, ObjectKey } from '../../client/index.ts'
import type { Cache, EventRecorder, LeaderElection, Saver } from '../../runtime/index.ts'
import type { Attempts } from './attempts.ts'
import type { IntentJournal } from './intent-journal.ts'
import type { ProvisioningMetrics } from './metrics.ts'
import type { ProvisioningSettings } from './options.ts'
import type { Provisioner } from './provisioner.ts'

export interface ProvisioningContext {
  readonly provisioner: Provisioner
  readonly settings: ProvisioningSettings
  /** The finalizer of claims for which a volume may exist in the storage (intent.ts). */
  readonly intentFinalizer: string
  /**
   * The journal of intents on an API server without atomic commits (intent-journal.ts). Undefined without
   * `settings.intentLease`; intents are then finalizers.
   */
  readonly journal: IntentJournal | undefined
  readonly client: Client
  /** The client for the writes of claims that are being provisioned. Over HTTP, it sends those of a burst together. */
  readonly writer: Client
  readonly trySave: Saver['trySave']
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly events: Pick<EventRecorder, 'record'>
  readonly metrics?: ProvisioningMetrics
  readonly election?: Pick<LeaderElection, 'assertStillLeader' | 'fence'>
  readonly claims: Cache<PersistentVolumeClaim>
  readonly volumes: Cache<PersistentVolume>
  readonly classes: Cache<StorageClass>
  readonly attachments: Cache<VolumeAttachment>
  readonly attempts: Attempts
  /**
   * The uids of the claims for which the binder of this process has recorded the intent, by key, until the storage is called.
   * Their finalizer does not mean that a volume may exist. Bounded by the number of such claims.
   */
  readonly expectedIntents: Map<ObjectKey, string>
  /**
   * Keys of the claims whose volume cannot be saved because another volume has its name, by that name. They wait until
   * the other volume is deleted. Bounded by the number of such volumes.
   */
  readonly claimsByTakenName: Map<string, ObjectKey>
}
