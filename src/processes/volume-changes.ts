// Creates the controllers that change a CSI driver's provisioned volumes: expansion and attribute modification, depending on the
// driver's capabilities.
import type { FeatureGates } from '../api/feature-gates.ts'
import {
  canExpand,
  createExpanding,
  createExpansionUnsupported,
  type ExpandingOptions,
} from '../controllers/expanding/index.ts'
import { createModifying, type ModifyingMetrics, type ModifyingOptions } from '../controllers/modifying/index.ts'
import {
  createChangeThrottle,
  createVolumeChangeControllers,
  type ServedNode,
  type ThrottleOptions,
  type VolumeChangeControllers,
  type VolumeChangeOptions,
} from '../controllers/volume-changes/index.ts'
import type { CsiDriver, DriverFacts } from '../csi/index.ts'
import type { ControllerDeps } from '../runtime/controller-deps.ts'
import type { EventRecorder, LeaderElection } from '../runtime/index.ts'

export interface VolumeChangeDeps extends ControllerDeps {
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly node?: ServedNode
  readonly events: Pick<EventRecorder, 'record'>
  readonly election?: LeaderElection
  readonly gates: FeatureGates
  readonly modifyingMetrics?: ModifyingMetrics
  readonly options?: DriverChangeOptions
}

export interface DriverChangeOptions extends VolumeChangeOptions {
  readonly expanding?: ExpandingOptions
  readonly modifying?: ModifyingOptions
  readonly throttle?: ThrottleOptions
  /** Default: true. */
  readonly isExpansionEnabled?: boolean
  /** Default: true. */
  readonly isModificationEnabled?: boolean
}

export function createVolumeChanges(deps: VolumeChangeDeps): VolumeChangeControllers {
  const { options = {}, node, gates, modifyingMetrics, ...changeDeps } = deps
  const { facts } = changeDeps
  const { expanding = {}, modifying, throttle: throttleOptions, ...optionsOfBoth } = options
  const { isExpansionEnabled = true, isModificationEnabled = true, ...common } = optionsOfBoth
  // Expansion and modification share the throttle, so that an edit of size and attributes counts as one change.
  const throttle = throttleOptions && createChangeThrottle(deps.clock, throttleOptions)
  const allowsModification = gates.enabled('VolumeAttributesClass') || gates.enabled('VolumeProvisionedIO')
  const createExpansion = () =>
    canExpand(facts)
      ? createExpanding({ ...changeDeps, throttle, options: expanding })
      : createExpansionUnsupported(changeDeps)
  const changes = [
    // Expansion precedes modification, because a larger volume may allow attributes that a smaller one does not.
    ...(isExpansionEnabled ? [createExpansion()] : []),
    // Also created for a driver without MODIFY_VOLUME, to record an event on claims that request a modification.
    ...(isModificationEnabled && allowsModification
      ? [
          createModifying({
            ...changeDeps,
            throttle,
            gates,
            options: { ...defaultsOf(facts), ...modifying },
            modifyingMetrics,
          }),
        ]
      : []),
  ]
  return createVolumeChangeControllers({ ...changeDeps, changes, options: common, node })
}

const LOCAL_DRIVER = 'local.csi.stowage.dev'

/** The attributes that a volume without a VolumeAttributesClass has. The local driver treats zero as no limit. */
const defaultsOf = ({ name }: DriverFacts): ModifyingOptions =>
  name === LOCAL_DRIVER ? { defaults: { iops: '0', throughput: '0' } } : {}
