// In place of growing, for a driver that cannot: a claim that asks for more is told why it gets nothing, and what to do.

import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { DriverFacts } from '../../csi/index.ts'
import { done, type EventRecorder, stuck } from '../../runtime/index.ts'
import { claimCapacity, isLess, requestedStorage } from '../../volumes/sizes.ts'
import type { Change } from '../volume-changes/index.ts'
import { resizeFailed } from './events.ts'

export interface CannotExpandDeps {
  readonly facts: Pick<DriverFacts, 'name'>
  readonly events: Pick<EventRecorder, 'record'>
}

export const createCannotExpand = ({ facts, events }: CannotExpandDeps): Change => ({
  name: 'expanding',
  matters: (next, old) => requestedStorage(next) !== requestedStorage(old),
  async reconcile({ claim }) {
    const [cap, req] = [claimCapacity(claim), requestedStorage(claim)]
    if (!isLess(cap, req) || claim.metadata.deletionTimestamp) return done
    const because =
      `CSI driver ${facts.name} does not support volume expansion: it reports the capability EXPAND_VOLUME neither for ` +
      `the controller nor for nodes. Lower the request to ${cap}`
    events.record(persistentVolumeClaimKind, claim, resizeFailed(because))
    return stuck(because)
  },
})
