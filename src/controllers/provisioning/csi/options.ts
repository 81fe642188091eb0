// The options of a CSI provisioner, which flags of `stowage provisioner` set, and their defaults.

import { allGatesOn, type FeatureGates } from '../../../api/feature-gates.ts'
import type { Credentials } from '../../../volumes/credentials.ts'

export interface CsiProvisionerOptions {
  /** Timeout of a call to the driver. */
  readonly timeoutMs: number
  /** With delayed binding, requires the selected node instead of only preferring it. */
  readonly strictTopology: boolean
  /** With immediate binding, passes the topology of all nodes if the class has no allowedTopologies. */
  readonly immediateTopology: boolean
  /** Passes the names of the claim and the volume as parameters. */
  readonly extraCreateMetadata: boolean
  /** File system type for classes without fstype. If empty, the driver chooses. */
  readonly defaultFsType: string
  /** Sets csi.readOnly on volumes whose only access mode is ReadOnlyMany. */
  readonly controllerPublishReadOnly: boolean
  /** Forbids restoring a snapshot with another volume mode unless its content allows it. */
  readonly preventVolumeModeConversion: boolean
  readonly gates: FeatureGates
  /** Returns the credentials of this process, which are used if the class names none, and first for deletion. */
  readonly credentials?: () => Credentials | undefined
  /** Set if each node runs its own instance. Otherwise one instance serves all nodes. */
  readonly node?: NodeDeployment
}

export interface NodeDeployment {
  readonly name: string
  /** Topology of this node from NodeGetInfo, or undefined if the driver reports none. */
  readonly segments?: Readonly<Record<string, string>>
  /** Whether this instance selects its node for claims with immediate binding. */
  readonly immediateBinding: boolean
  /** Maximum of the random delay before the node is selected. It doubles with each retry up to `maxDelayMs`. */
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
