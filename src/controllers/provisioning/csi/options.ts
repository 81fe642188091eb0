// Options of a CSI provisioner and their defaults, set by flags of `stowage provisioner`.

import { allGatesOn, type FeatureGates } from '../../../api/feature-gates.ts'
import type { Credentials } from '../../../volumes/credentials.ts'

export interface CsiProvisionerOptions {
  /** Per call to the driver. */
  readonly timeoutMs: number
  /** Delayed binding: the selected node is required, not only preferred. */
  readonly strictTopology: boolean
  /** Immediate binding: pass the topology of all nodes, also without allowedTopologies. */
  readonly immediateTopology: boolean
  /** Pass the names of claim and volume as parameters. */
  readonly extraCreateMetadata: boolean
  /** For classes without fstype; '' leaves it to the driver. */
  readonly defaultFsType: string
  /** Set csi.readOnly on volumes whose only access mode is ReadOnlyMany. */
  readonly controllerPublishReadOnly: boolean
  /** Forbid restoring a snapshot with another volume mode, unless its content allows it. */
  readonly preventVolumeModeConversion: boolean
  readonly gates: FeatureGates
  /** Current credentials given to this process: used if the class names none, and first for deleting. */
  readonly credentials?: () => Credentials | undefined
  /** One instance per node provisions the volumes of that node. Absent: one instance for all. */
  readonly node?: NodeDeployment
}

export interface NodeDeployment {
  readonly name: string
  /** Topology of this node from NodeGetInfo; undefined if the driver reports none. */
  readonly segments?: Readonly<Record<string, string>>
  /** Whether to compete for claims with immediate binding. */
  readonly immediateBinding: boolean
  /** Upper limit of the random delay before competing; doubles up to the maximum per retry. */
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
