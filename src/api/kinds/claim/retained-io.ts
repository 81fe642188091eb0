// spec.allocatedResources.iops and .throughput of a claim: what its volume still provides after the request was removed.
// Quota charges it, so removing a request frees nothing that is still provided. Only the server sets it. A claim that
// never requested an amount has none, and a new request or an attributes class replaces it.
//   request     800  –    –    300  –
//   class        –   –   gold  –    –
//   capacity    800  800  –    300  300
//   retained     –   800  –    –    300

import { amountOf, IO_RESOURCES, isIoResource, type ResourceList } from '../shared/provisioned-io.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from './claim-schema.ts'

export function withRetainedIo(next: PersistentVolumeClaim, old: PersistentVolumeClaim): PersistentVolumeClaimSpec {
  const { allocatedResources = {}, ...spec } = next.spec ?? {}
  const others = Object.entries(allocatedResources).filter(([name]) => !isIoResource(name))
  const marks: ResourceList = { ...retainedIo(next, old), ...Object.fromEntries(others) }
  return Object.keys(marks).length > 0 ? { ...spec, allocatedResources: marks } : spec
}

function retainedIo({ spec, status }: PersistentVolumeClaim, old: PersistentVolumeClaim): ResourceList {
  const retained: ResourceList = {}
  for (const name of IO_RESOURCES) {
    const provided = amountOf(status?.capacity, name)
    const isRequested = amountOf(spec?.resources?.requests, name) !== undefined
    if (provided !== undefined && !isRequested && wasRequested(old, name)) retained[name] = provided
  }
  return retained
}

/** Whether the claim requested the resource, now or earlier. */
const wasRequested = ({ spec, status }: PersistentVolumeClaim, name: string): boolean =>
  [spec?.resources?.requests, spec?.allocatedResources, status?.allocatedResources].some(
    (list) => amountOf(list, name) !== undefined,
  )
