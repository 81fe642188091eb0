// What changes volumes of a CSI driver while they are bound, put together from what the driver can do. Used beside the
// other controllers of a driver (driver-socket.ts) and alone (resizer-work.ts).
import type { FeatureGates } from '../api/feature-gates.ts'
import {
  canExpand,
  createCannotExpand,
  createExpanding,
  type ExpandingOptions,
} from '../controllers/expanding/index.ts'
import { createModifying, type ModifyingMetrics, type ModifyingOptions } from '../controllers/modifying/index.ts'
import {
  type ChangingControllers,
  type ChangingOptions,
  createChangingControllers,
  createPace,
  type PaceOptions,
  type ServedNode,
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
  readonly options?: ChangingOptions & {
    readonly expanding?: ExpandingOptions
    readonly modifying?: ModifyingOptions
    readonly pace?: PaceOptions
  }
}

/** Who tells people about them, as they know it. */
export const changesComponent = ({ name }: Pick<DriverFacts, 'name'>): string => `external-resizer ${name}`

export function createVolumeChanges(deps: VolumeChangeDeps): ChangingControllers {
  const { options = {}, node, gates, modifyingMetrics, ...rest } = deps
  const { facts } = rest
  const { expanding, modifying, pace: paceOptions, ...frame } = options
  // One for both kinds: what one edit asks for is one change.
  const pace = paceOptions ? { pace: createPace(deps.clock, paceOptions) } : {}
  const changesAttributes = gates.enabled('VolumeAttributesClass') || gates.enabled('VolumeProvisionedIO')
  const changes = [
    // Room before attributes: what a larger volume may have, a smaller one may not.
    canExpand(facts) ? createExpanding({ ...rest, ...pace, options: expanding ?? {} }) : createCannotExpand(rest),
    // Also for a driver that cannot: people are told why nothing happens.
    ...(changesAttributes
      ? [
          createModifying({
            ...rest,
            ...pace,
            gates,
            options: { ...defaultsOf(facts), ...modifying },
            ...(modifyingMetrics ? { modifyingMetrics } : {}),
          }),
        ]
      : []),
  ]
  return createChangingControllers({ ...rest, changes, options: frame, ...(node ? { node } : {}) })
}

const LOCAL_DRIVER = 'local.csi.stowage.dev'

/** Our own driver takes zero for no limit, which is what a volume has of which nobody said anything. */
const defaultsOf = ({ name }: DriverFacts): ModifyingOptions =>
  name === LOCAL_DRIVER ? { defaults: { iops: '0', throughput: '0' } } : {}
