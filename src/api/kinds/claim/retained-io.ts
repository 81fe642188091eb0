// Maintains spec.allocatedResources.iops and .throughput of a claim: the amounts that its volume still provides after their
// request was removed. Quota charges them, so that removing a request does not free quota. Values from clients are ignored.
// A new request or an attributes class replaces a retained amount.
//   request     800  –    –    300  –
//   class        –   –   gold  –    –
//   capacity    800  800  –    300  300
//   retained     –   800  –    –    300

import { amountOf, IO_RESOURCES, isIoResource, type ResourceList } from '../shared/provisioned-io.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from './claim-schema.ts'

export function withRetainedIo(next: PersistentVolumeClaim, old: PersistentVolumeClaim): PersistentVolumeClaimSpec {
  const { allocatedResources = {}, ...spec } = next.spec ?? {}
  const otherEntries = Object.entries(allocatedResources).filter(([name]) => !isIoResource(name))
  const amounts: ResourceList = { ...retainedIo(next, old), ...Object.fromEntries(otherEntries) }
  return Object.keys(amounts).length > 0 ? { ...spec, allocatedResources: amounts } : spec
}

function retainedIo({ spec, status }: PersistentVolumeClaim, old: PersistentVolumeClaim): ResourceList {
  const retained: ResourceList = {}
  for (const name of IO_RESOURCES) {
    const capacity = amountOf(status?.capacity, name)
    const isRequested = amountOf(spec?.resources?.requests, name) !== undefined
    if (capacity !== undefined && !isRequested && wasRequested(old, name)) retained[name] = capacity
  }
  return retained
}

/** Returns whether the claim requests the resource or requested it earlier. */
const wasRequested = ({ spec, status }: PersistentVolumeClaim, name: string): boolean =>
  [spec?.resources?.requests, spec?.allocatedResources, status?.allocatedResources].some(
    (list) => amountOf(list, name) !== undefined,
  )
