// The switches of a CSI provisioner, and what each is when nothing is said; the flags of `stowage provisioner` set them.

import { allGatesOn, type FeatureGates } from '../../../api/feature-gates.ts'
import type { Credentials } from '../../../volumes/credentials.ts'

export interface CsiProvisionerOptions {
  /** For one call of the driver. */
  readonly timeoutMs: number
  /** Delayed binding: volumes are asked for on the selected node only, not preferably there. */
  readonly strictTopology: boolean
  /** Immediate binding: the driver is told where the nodes are, also when the class restricts nothing. */
  readonly immediateTopology: boolean
  /** Whether the driver is told the names of claim and volume as parameters. */
  readonly extraCreateMetadata: boolean
  /** For classes that name no file system; '' leaves it to the driver. */
  readonly defaultFsType: string
  /** Volumes whose only access mode is ReadOnlyMany are marked as read-only. */
  readonly controllerPublishReadOnly: boolean
  /** A snapshot of a file system does not become a block device, nor the other way round, unless its content allows it. */
  readonly preventVolumeModeConversion: boolean
  readonly gates: FeatureGates
  /** Those given to this process, as they are now: used where a class names none, and first of all for deleting. */
  readonly credentials?: () => Credentials | undefined
  /** One instance runs on each node and makes the volumes of that node. Absent: one makes them all. */
  readonly node?: NodeDeployment
}

export interface NodeDeployment {
  readonly name: string
  /** Where the driver says this node is; undefined if it does not say. */
  readonly segments?: Readonly<Record<string, string>>
  /** Whether claims that wait for no pod are competed for. */
  readonly immediateBinding: boolean
  /** How long, at most, an instance lets the others go first; doubles up to the maximum for a claim tried again. */
  readonly baseDelayMs: number
  readonly maxDelayMs: number
}

export const DEFAULT_OPTIONS: CsiProvisionerOptions = {
  timeoutMs: 10_000,
  strictTopology: false,
  immediateTopology: true,
  extraCreateMetadata: false,
  defaultFsType: '',
  controllerPublishReadOnly: false,
  preventVolumeModeConversion: true,
  gates: allGatesOn,
}
