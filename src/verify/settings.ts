// The settings of a verification: sizes, class parameters, attributes, secrets, a second node, timeouts and the seed.
import type { StorageClass } from '../api/kinds/storage-class/storage-class-schema.ts'

export interface VerifySettings {
  readonly sizeBytes: number
  /** The size after an expansion. */
  readonly expandedBytes: number
  /** The class of the volumes, without the reserved parameters for secrets. */
  readonly storageClass: Pick<StorageClass, 'parameters' | 'mountOptions' | 'volumeBindingMode'>
  /** The parameters of ControllerModifyVolume. Undefined if the driver's keys are not known. */
  readonly attributes: Readonly<Record<string, string>> | undefined
  readonly secrets: Secrets
  /** The id of a second node known to the controller service. */
  readonly otherNodeId: string | undefined
  /** Real time after which a call without a response is cancelled. */
  readonly callTimeoutMs: number
  /** Real time after which a check ends. */
  readonly checkTimeoutMs: number
  readonly seed: number
}

/** The keys of the `--secrets` file, which are the same as for csi-sanity. */
export const SECRET_KEYS = [
  'CreateVolumeSecret',
  'DeleteVolumeSecret',
  'ControllerPublishVolumeSecret',
  'ControllerUnpublishVolumeSecret',
  'ControllerValidateVolumeCapabilitiesSecret',
  'NodeStageVolumeSecret',
  'NodePublishVolumeSecret',
  'ControllerExpandVolumeSecret',
  'ControllerModifyVolumeSecret',
] as const
export type SecretKey = (typeof SECRET_KEYS)[number]

export type Secrets = Readonly<Partial<Record<SecretKey, Readonly<Record<string, string>>>>>

const GI = 1024 ** 3

export const DEFAULT_SETTINGS: VerifySettings = {
  sizeBytes: GI,
  expandedBytes: 2 * GI,
  storageClass: {},
  attributes: undefined,
  secrets: {},
  otherNodeId: undefined,
  callTimeoutMs: 10_000,
  checkTimeoutMs: 60_000,
  seed: 1,
}
