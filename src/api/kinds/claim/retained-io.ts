// Maintains the annotation of a claim with the iops and throughput that its volume still provides after their request was
// removed. Quota charges them, so that removing a request does not free quota. Values from clients are ignored. An amount is
// retained until the claim requests it again or status.capacity no longer has it. Claims that were stored with retained
// amounts in spec.allocatedResources are charged as before, and their next write moves the amounts to the annotation.
// An example, in the order of the writes:
//   request     800  –    –    300  –
//   class        –   –   gold  –    –
//   capacity    800  800  –    300  300
//   retained     –   800  –    –    300

import { isQuantity } from '../../quantity.ts'
import { amountOf, IO_RESOURCES, isIoResource, type ResourceList } from '../shared/provisioned-io.ts'
import type { PersistentVolumeClaim } from './claim-schema.ts'

export const RETAINED_IO_ANNOTATION = 'quota.stowage.dev/retained-io'

/** Returns the amounts that the claim is charged for although it no longer requests them. */
export function retainedIoOf({ metadata, spec }: PersistentVolumeClaim): ResourceList {
  return { ...ioOf(spec?.allocatedResources), ...parseAmounts(metadata?.annotations?.[RETAINED_IO_ANNOTATION]) }
}

/** Sets the annotation. `old` is the stored claim, or undefined on create. */
export function setRetainedIo(next: PersistentVolumeClaim, old: PersistentVolumeClaim | undefined): void {
  const retainedAmounts = old ? computeRetainedAmounts(next, old) : {}
  const hasRetainedAmounts = Object.keys(retainedAmounts).length > 0
  if (hasRetainedAmounts || next.metadata.annotations?.[RETAINED_IO_ANNOTATION] !== undefined) {
    const { [RETAINED_IO_ANNOTATION]: _ignored, ...annotations } = next.metadata.annotations ?? {}
    if (hasRetainedAmounts) annotations[RETAINED_IO_ANNOTATION] = JSON.stringify(retainedAmounts)
    if (Object.keys(annotations).length > 0) next.metadata.annotations = annotations
    else delete next.metadata.annotations
  }

  if (!IO_RESOURCES.some((name) => next.spec?.allocatedResources?.[name] !== undefined)) return
  const { allocatedResources = {}, ...spec } = next.spec ?? {}
  const storageEntries = Object.entries(allocatedResources).filter(([name]) => !isIoResource(name))
  next.spec = storageEntries.length > 0 ? { ...spec, allocatedResources: Object.fromEntries(storageEntries) } : spec
}

function computeRetainedAmounts({ spec, status }: PersistentVolumeClaim, old: PersistentVolumeClaim): ResourceList {
  const retainedAmounts: ResourceList = {}
  for (const name of IO_RESOURCES) {
    const capacity = amountOf(status?.capacity, name)
    const isRequested = amountOf(spec?.resources?.requests, name) !== undefined
    if (capacity !== undefined && !isRequested && wasRequested(old, name)) retainedAmounts[name] = capacity
  }
  return retainedAmounts
}

/** Returns whether the claim requests the resource or requested it earlier. */
const wasRequested = (claim: PersistentVolumeClaim, name: string): boolean =>
  [claim.spec?.resources?.requests, retainedIoOf(claim), claim.status?.allocatedResources].some(
    (list) => amountOf(list, name) !== undefined,
  )

/** Returns no amounts if the text is not a JSON object: only the server writes it. */
function parseAmounts(text: string | undefined): ResourceList {
  if (text === undefined) return {}
  try {
    const amounts: unknown = JSON.parse(text)
    return typeof amounts === 'object' && amounts !== null ? ioOf(amounts as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function ioOf(list: Readonly<Record<string, unknown>> = {}): ResourceList {
  const entries = Object.entries(list).filter(([name, amount]) => isIoResource(name) && isQuantity(amount))
  return Object.fromEntries(entries.map(([name, amount]) => [name, String(amount)]))
}
