// The options of the provisioning controllers.
import { allGatesOn, type FeatureGates } from '../../api/feature-gates.ts'
import type { ObjectRef } from '../../client/index.ts'
import type { Backoff } from '../../runtime/backoff.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER } from '../../volumes/names.ts'

export interface ProvisioningOptions {
  /** Whether the provisioner runs in the same process as the binder. Default: false. */
  readonly inProcess?: boolean
  /**
   * Whether queue names contain the provisioner's name, because several provisioners run in this process. Default:
   * inProcess.
   */
  readonly prefixesQueueNames?: boolean
  /** Prefix of volume names, which are `<prefix>-<uid of the claim>`. Default: `pvc`. */
  readonly volumeNamePrefix?: string
  /** Number of characters of the uid without dashes in volume names. Default: -1, the whole uid with dashes. */
  readonly volumeNameUuidLength?: number
  /** Delay after the first failure for a claim or volume. It doubles with each further failure. Default: 1 s. */
  readonly retryIntervalStartMs?: number
  /** Maximum delay after failures. Default: 5 min. */
  readonly retryIntervalMaxMs?: number
  /** Maximum number of claims that are reconciled concurrently, and of volumes. Default: 100. */
  readonly workers?: number
  /**
   * Whether a new volume is bound in the commit that creates it, if the API server has atomic commits. Otherwise the binder
   * binds it. Default: false.
   */
  readonly bindsOnSave?: boolean
  /**
   * The Lease for the intents of this provisioner, if the API server has no atomic commits. Requires leader election: one
   * process at a time records intents there. Default: intents are finalizers of the claims.
   */
  readonly intentLease?: ObjectRef
  /** Feature gates of the binder. Default: all enabled. */
  readonly gates?: FeatureGates
  /** Finalizer of volumes until their storage is deleted. Default: the finalizer of external or in-process provisioners. */
  readonly volumeFinalizer?: string
}

export interface ProvisioningSettings {
  readonly inProcess: boolean
  readonly prefixesQueueNames: boolean
  readonly volumeNamePrefix: string
  readonly volumeNameUuidLength: number
  readonly backoff: Backoff
  readonly workers: number
  readonly bindsOnSave: boolean
  readonly intentLease: ObjectRef | undefined
  readonly gates: FeatureGates
  readonly volumeFinalizer: string
}

const WORKERS = 100
const RETRY_START_MS = 1_000
const RETRY_MAX_MS = 300_000

export function settingsOf(options: ProvisioningOptions): ProvisioningSettings {
  const { inProcess = false, volumeNamePrefix = 'pvc', volumeNameUuidLength = -1, workers = WORKERS } = options
  if (volumeNamePrefix === '') throw new Error('Cannot name volumes: volumeNamePrefix must not be empty.')
  if (volumeNameUuidLength !== -1 && !(Number.isInteger(volumeNameUuidLength) && volumeNameUuidLength > 0)) {
    throw new Error(
      `Cannot name volumes with ${volumeNameUuidLength} characters of the claim's uid: set volumeNameUuidLength to -1 or to a positive integer.`,
    )
  }
  return {
    inProcess,
    prefixesQueueNames: options.prefixesQueueNames ?? inProcess,
    volumeNamePrefix,
    volumeNameUuidLength,
    workers,
    bindsOnSave: options.bindsOnSave ?? false,
    intentLease: options.intentLease,
    gates: options.gates ?? allGatesOn,
    backoff: {
      baseMs: options.retryIntervalStartMs ?? RETRY_START_MS,
      maxMs: options.retryIntervalMaxMs ?? RETRY_MAX_MS,
    },
    volumeFinalizer:
      options.volumeFinalizer ?? (inProcess ? IN_PROCESS_PROVISIONER_FINALIZER : EXTERNAL_PROVISIONER_FINALIZER),
  }
}

/** Returns the same name in every attempt, so that only one PV can be created for a claim. */
export function volumeNameOf(
  claimUid: string,
  settings: Pick<ProvisioningSettings, 'volumeNamePrefix' | 'volumeNameUuidLength'>,
): string {
  const { volumeNamePrefix: prefix, volumeNameUuidLength: length } = settings
  return `${prefix}-${length === -1 ? claimUid : claimUid.replaceAll('-', '').slice(0, length)}`
}
