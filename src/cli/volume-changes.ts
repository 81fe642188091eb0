// What changes volumes of a CSI driver while they are bound, put together from what the driver can do. Used beside the
// other controllers of a driver (driver-socket.ts) and alone (resizer-work.ts).
import type { EventRecorder, LeaderElection } from '../client/index.ts'
import {
  type ChangingControllers,
  type ChangingOptions,
  createChangingControllers,
  type ServedNode,
} from '../controllers/changing/index.ts'
import type { ControllerDeps } from '../controllers/deps.ts'
import { canExpand, createExpanding, type ExpandingOptions } from '../controllers/expanding/index.ts'
import type { CsiDriver, DriverFacts } from '../csi/index.ts'

export interface VolumeChangeDeps extends ControllerDeps {
  readonly driver: CsiDriver
  readonly facts: DriverFacts
  readonly node?: ServedNode
  readonly events: Pick<EventRecorder, 'record'>
  readonly election?: LeaderElection
  readonly options?: ChangingOptions & { readonly expanding?: ExpandingOptions }
}

/** Who tells people about them, as they know it. */
export const changesComponent = ({ name }: Pick<DriverFacts, 'name'>): string => `external-resizer ${name}`

/** Undefined where the driver can change nothing. */
export function createVolumeChanges(deps: VolumeChangeDeps): ChangingControllers | undefined {
  const { options = {}, node, facts, ...rest } = deps
  const { expanding, ...frame } = options
  const changes = [
    // Room before attributes: what a larger volume may have, a smaller one may not.
    ...(canExpand(facts) ? [createExpanding({ ...rest, facts, options: expanding ?? {} })] : []),
  ]
  if (changes.length === 0) return undefined
  return createChangingControllers({ ...rest, facts, changes, options: frame, ...(node ? { node } : {}) })
}
