// Options of the provisioning controllers. The defaults are those of external-provisioner.
import { allGatesOn, type FeatureGates } from '../../api/feature-gates.ts'
import type { Backoff } from '../../runtime/backoff.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER } from '../../volumes/names.ts'

export interface ProvisioningOptions {
  /** The provisioner is a plugin in the process of the binder. Default false. */
  readonly inProcess?: boolean
  /** Several provisioners run in this process: queue names contain the provisioner. Default: as inProcess. */
  readonly isOneOfSeveral?: boolean
  /** Volumes are named `<prefix>-<uid of the claim>`. Default `pvc`. */
  readonly volumeNamePrefix?: string
  /** Number of characters of the uid, without dashes, in the name. Default -1: the whole uid with dashes. */
  readonly volumeNameUuidLength?: number
  /** Backoff between tries for one claim or volume. Default 1 s, doubling up to 5 min. */
  readonly retryIntervalStartMs?: number
  readonly retryIntervalMaxMs?: number
  /** Claims reconciled at once, and as many volumes. Default 100. */
  readonly workers?: number
  /**
   * Bind a new volume in the commit that creates it, on a server with atomic commits, instead of leaving it to the binder.
   * Default false.
   */
  readonly bindsOnSave?: boolean
  /** Feature gates of the binder. Default: all enabled. */
  readonly gates?: FeatureGates
  /** Finalizer on volumes until their storage is deleted. Default: that of external or in-process provisioners. */
  readonly volumeFinalizer?: string
}

export interface ProvisioningSettings {
  readonly inProcess: boolean
  readonly isOneOfSeveral: boolean
  readonly volumeNamePrefix: string
  readonly volumeNameUuidLength: number
  readonly backoff: Backoff
  readonly workers: number
  readonly bindsOnSave: boolean
  readonly gates: FeatureGates
  readonly volumeFinalizer: string
}

const WORKERS = 100
const RETRY_START_MS = 1_000
const RETRY_MAX_MS = 300_000

export function settingsOf(options: ProvisioningOptions): ProvisioningSettings {
  const { inProcess = false, volumeNamePrefix = 'pvc', volumeNameUuidLength = -1, workers = WORKERS } = options
  if (volumeNamePrefix === '') throw new Error('Cannot name volumes: the prefix of their names is empty. Set one.')
  if (volumeNameUuidLength !== -1 && !(Number.isInteger(volumeNameUuidLength) && volumeNameUuidLength > 0)) {
    throw new Error(
      `Cannot name volumes with ${volumeNameUuidLength} characters of the claim's uid: give -1 for all of it, or 1 or more.`,
    )
  }
  return {
    inProcess,
    isOneOfSeveral: options.isOneOfSeveral ?? inProcess,
    volumeNamePrefix,
    volumeNameUuidLength,
    workers,
    bindsOnSave: options.bindsOnSave ?? false,
    gates: options.gates ?? allGatesOn,
    backoff: {
      baseMs: options.retryIntervalStartMs ?? RETRY_START_MS,
      maxMs: options.retryIntervalMaxMs ?? RETRY_MAX_MS,
    },
    volumeFinalizer:
      options.volumeFinalizer ?? (inProcess ? IN_PROCESS_PROVISIONER_FINALIZER : EXTERNAL_PROVISIONER_FINALIZER),
  }
}

/** The same for every provisioner and every try, so that two volumes for one claim collide. */
export function volumeNameOf(claimUid: string, settings: ProvisioningSettings): string {
  const { volumeNamePrefix: prefix, volumeNameUuidLength: length } = settings
  return `${prefix}-${length === -1 ? claimUid : claimUid.replaceAll('-', '').slice(0, length)}`
}
