// What a provisioning controller can be told, and what it does when it is not. The defaults are those of the external
// provisioners that operators know.
import { allGatesOn, type FeatureGates } from '../../api/feature-gates.ts'
import type { Backoff } from '../../runtime/backoff.ts'
import { EXTERNAL_PROVISIONER_FINALIZER, IN_PROCESS_PROVISIONER_FINALIZER } from '../../volumes/names.ts'

export interface ProvisioningOptions {
  /** The provisioner is a plugin of this very process, not one beside it. Default false. */
  readonly inProcess?: boolean
  /** Others provide volumes in this process too: its queues carry the provisioner's name. Default: as inProcess. */
  readonly isOneOfSeveral?: boolean
  /** Volumes are called `<prefix>-<uid of the claim>`. Default `pvc`. */
  readonly volumeNamePrefix?: string
  /** How much of the uid, without its dashes, the name has. Default -1: all of it, with its dashes. */
  readonly volumeNameUuidLength?: number
  /** Between two tries for one claim or volume: from, doubling, to. Default 1 s and 5 min. */
  readonly retryIntervalStartMs?: number
  readonly retryIntervalMaxMs?: number
  /** Claims worked on at once, and as many volumes. Default 100. */
  readonly workers?: number
  /**
   * A new volume is bound to its claim in the commit that saves it, where that is one transaction, rather than by the
   * binder once it has seen the volume. Default false.
   */
  readonly bindsAtOnce?: boolean
  /** Those of the binder. Default: all on. */
  readonly gates?: FeatureGates
  /** What holds a volume until its storage is deleted. Default: what external, or in-process, provisioners use. */
  readonly volumeFinalizer?: string
}

export interface ProvisioningSettings {
  readonly inProcess: boolean
  readonly isOneOfSeveral: boolean
  readonly volumeNamePrefix: string
  readonly volumeNameUuidLength: number
  readonly backoff: Backoff
  readonly workers: number
  readonly bindsAtOnce: boolean
  readonly gates: FeatureGates
  readonly volumeFinalizer: string
}

const WORKERS = 100
const RETRY_START_MS = 1_000
const RETRY_MAX_MS = 300_000

export function settingsOf(options: ProvisioningOptions): ProvisioningSettings {
  const { inProcess = false, volumeNamePrefix = 'pvc', volumeNameUuidLength = -1, workers = WORKERS } = options
  if (volumeNamePrefix === '') throw new Error('Cannot name volumes: the prefix of their names is empty. Give one.')
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
    bindsAtOnce: options.bindsAtOnce ?? false,
    gates: options.gates ?? allGatesOn,
    backoff: {
      baseMs: options.retryIntervalStartMs ?? RETRY_START_MS,
      maxMs: options.retryIntervalMaxMs ?? RETRY_MAX_MS,
    },
    volumeFinalizer:
      options.volumeFinalizer ?? (inProcess ? IN_PROCESS_PROVISIONER_FINALIZER : EXTERNAL_PROVISIONER_FINALIZER),
  }
}

/** The same for every provisioner and every try: two volumes of one claim collide. */
export function volumeNameOf(claimUid: string, settings: ProvisioningSettings): string {
  const { volumeNamePrefix: prefix, volumeNameUuidLength: length } = settings
  return `${prefix}-${length === -1 ? claimUid : claimUid.replaceAll('-', '').slice(0, length)}`
}
