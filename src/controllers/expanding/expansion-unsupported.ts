// Creates the VolumeChange of a driver or plugin that does not expand volumes. It only records an event that explains why the
// volume is not expanded.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { DriverFacts } from '../../csi/index.ts'
import { done, type EventRecorder, stuck } from '../../runtime/index.ts'
import { claimCapacity, isLess, requestedStorage } from '../../volumes/sizes.ts'
import type { VolumeChange } from '../volume-changes/index.ts'
import { resizeFailed } from './events.ts'

export interface ExpansionUnsupportedDeps {
  readonly facts: Pick<DriverFacts, 'name'>
  readonly events: Pick<EventRecorder, 'record'>
  /** Why the volume is not expanded. Default: the capability that the CSI driver lacks. */
  readonly message?: string
}

export const createExpansionUnsupported = ({
  facts,
  events,
  message: reason = missingCapability(facts.name),
}: ExpansionUnsupportedDeps): VolumeChange => ({
  name: 'expanding',
  matters: (next, old) => requestedStorage(next) !== requestedStorage(old),
  async reconcile({ claim }) {
    const [capacity, requestedSize] = [claimCapacity(claim), requestedStorage(claim)]
    if (!isLess(capacity, requestedSize) || claim.metadata.deletionTimestamp) return done
    const message = `${reason} Lower the request to ${capacity}`
    events.record(persistentVolumeClaimKind, claim, resizeFailed(message))
    return stuck(message)
  },
})

const missingCapability = (driverName: string): string =>
  `CSI driver ${driverName} does not support volume expansion: it reports the capability EXPAND_VOLUME neither for its ` +
  'controller nor for its node service.'
