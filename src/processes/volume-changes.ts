// The controllers that change volumes of a CSI driver after provisioning, composed from what the driver can do: expansion,
// and modification of attributes. Part of driver-controllers.ts.
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
}

export function createVolumeChanges(deps: VolumeChangeDeps): VolumeChangeControllers {
  const { options = {}, node, gates, modifyingMetrics, ...rest } = deps
  const { facts } = rest
  const { expanding = {}, modifying, throttle: throttleOptions, ...common } = options
  // Shared by both: an edit of size and attributes counts as one change.
  const throttle = throttleOptions && createChangeThrottle(deps.clock, throttleOptions)
  const changesAttributes = gates.enabled('VolumeAttributesClass') || gates.enabled('VolumeProvisionedIO')
  const changes = [
    // Size before attributes: a larger volume may allow attributes that a smaller one does not.
    canExpand(facts) ? createExpanding({ ...rest, throttle, options: expanding }) : createExpansionUnsupported(rest),
    // Also for a driver without MODIFY_VOLUME: its claims get an event with the reason why nothing happens.
    ...(changesAttributes
      ? [
          createModifying({
            ...rest,
            throttle,
            gates,
            options: { ...defaultsOf(facts), ...modifying },
            modifyingMetrics,
          }),
        ]
      : []),
  ]
  return createVolumeChangeControllers({ ...rest, changes, options: common, node })
}

const LOCAL_DRIVER = 'local.csi.stowage.dev'

/** The local driver reads zero as no limit, which is what a volume without these attributes has. */
const defaultsOf = ({ name }: DriverFacts): ModifyingOptions =>
  name === LOCAL_DRIVER ? { defaults: { iops: '0', throughput: '0' } } : {}
