// What changes volumes of a CSI driver while they are bound, put together from what the driver can do. Used beside the
// other controllers of a driver (driver-socket.ts) and alone (resizer-work.ts).
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
  readonly options?: VolumeChangeOptions & {
    readonly expanding?: ExpandingOptions
    readonly modifying?: ModifyingOptions
    readonly pace?: ThrottleOptions
  }
}

/** Who tells people about them, as they know it. */
export const changesComponent = ({ name }: Pick<DriverFacts, 'name'>): string => `external-resizer ${name}`

export function createVolumeChanges(deps: VolumeChangeDeps): VolumeChangeControllers {
  const { options = {}, node, gates, modifyingMetrics, ...rest } = deps
  const { facts } = rest
  const { expanding, modifying, pace: paceOptions, ...frame } = options
  // One for both kinds: what one edit asks for is one change.
  const throttle = paceOptions && createChangeThrottle(deps.clock, paceOptions)
  const changesAttributes = gates.enabled('VolumeAttributesClass') || gates.enabled('VolumeProvisionedIO')
  const changes = [
    // Room before attributes: what a larger volume may have, a smaller one may not.
    canExpand(facts) ? createExpanding({ ...rest, throttle, options: expanding }) : createExpansionUnsupported(rest),
    // Also for a driver that cannot: people are told why nothing happens.
    ...(changesAttributes
      ? [
          createModifying({
            ...rest,
            throttle,
            gates,
            options: { ...defaultsOf(facts), ...modifying },
            ...(modifyingMetrics ? { modifyingMetrics } : {}),
          }),
        ]
      : []),
  ]
  return createVolumeChangeControllers({ ...rest, changes, options: frame, ...(node ? { node } : {}) })
}

const LOCAL_DRIVER = 'local.csi.stowage.dev'

/** Our own driver takes zero for no limit, which is what a volume has of which nobody said anything. */
const defaultsOf = ({ name }: DriverFacts): ModifyingOptions =>
  name === LOCAL_DRIVER ? { defaults: { iops: '0', throughput: '0' } } : {}
