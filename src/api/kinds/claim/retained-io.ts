// spec.allocatedResources of a claim, iops and throughput: what its volume keeps after the claim has stopped asking for it.
// Quota charges it, so taking a request back frees nothing that is still provided. The server alone writes it. A claim that
// never asked has none, whatever its volume provides, and it ends when another request or a class decides.
//   request     800  –    –    300  –
//   class        –   –   gold  –    –
//   capacity    800  800  –    300  300
//   kept         –   800  –    –    300

import { amountOf, IO_RESOURCES, isIoResource, type ResourceList } from '../shared/provisioned-io.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from './claim-schema.ts'

export function withRetainedIo(next: PersistentVolumeClaim, old: PersistentVolumeClaim): PersistentVolumeClaimSpec {
  const { allocatedResources = {}, ...spec } = next.spec ?? {}
  const others = Object.entries(allocatedResources).filter(([name]) => !isIoResource(name))
  const marks: ResourceList = { ...retainedIo(next, old), ...Object.fromEntries(others) }
  return Object.keys(marks).length > 0 ? { ...spec, allocatedResources: marks } : spec
}

function retainedIo({ spec, status }: PersistentVolumeClaim, old: PersistentVolumeClaim): ResourceList {
  const kept: ResourceList = {}
  for (const name of IO_RESOURCES) {
    const provided = amountOf(status?.capacity, name)
    const isAskedFor = amountOf(spec?.resources?.requests, name) !== undefined
    if (provided !== undefined && !isAskedFor && wasPromised(old, name)) kept[name] = provided
  }
  return kept
}

/** Because the claim asked, now or earlier. */
const wasPromised = ({ spec, status }: PersistentVolumeClaim, name: string): boolean =>
  [spec?.resources?.requests, spec?.allocatedResources, status?.allocatedResources].some(
    (list) => amountOf(list, name) !== undefined,
  )
