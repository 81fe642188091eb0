// Creates the VolumeChange of a driver without the capability EXPAND_VOLUME. It only records an event that explains why
// the volume is not expanded.
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { DriverFacts } from '../../csi/index.ts'
import { done, type EventRecorder, stuck } from '../../runtime/index.ts'
import { claimCapacity, isLess, requestedStorage } from '../../volumes/sizes.ts'
import type { VolumeChange } from '../volume-changes/index.ts'
import { resizeFailed } from './events.ts'

export interface ExpansionUnsupportedDeps {
  readonly facts: Pick<DriverFacts, 'name'>
  readonly events: Pick<EventRecorder, 'record'>
}

export const createExpansionUnsupported = ({ facts, events }: ExpansionUnsupportedDeps): VolumeChange => ({
  name: 'expanding',
  matters: (next, old) => requestedStorage(next) !== requestedStorage(old),
  async reconcile({ claim }) {
    const [capacity, requested] = [claimCapacity(claim), requestedStorage(claim)]
    if (!isLess(capacity, requested) || claim.metadata.deletionTimestamp) return done
    const message =
      `CSI driver ${facts.name} does not support volume expansion: it reports the capability EXPAND_VOLUME neither for ` +
      `its controller nor for its node service. Lower the request to ${capacity}`
    events.record(persistentVolumeClaimKind, claim, resizeFailed(message))
    return stuck(message)
  },
})
