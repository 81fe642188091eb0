// What `stowage grow` does with one claim, and how far that is. Pure: the claim as it is goes in.
// Writing the size is grow-claim.ts, the set of claims is claim-set/.

import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { addQuantities, canonicalQuantity, compareQuantities } from '../../../api/quantity.ts'
import type { ClaimStatus } from '../../bulk/index.ts'
import { GROW_RECORD, type GrowRecord, recordOf } from './record.ts'

type Claim = Readonly<PersistentVolumeClaim>

export type GrowTarget =
  | { readonly to: string }
  /** `run` names this run; `goesOn` are the runs whose records it goes by: itself, and interrupted ones it is the rest of. */
  | { readonly by: string; readonly run: string; readonly goesOn: readonly string[] }

export type GrowPlan =
  /** `record`: to be written with the size; null: one that is there means nothing any more. */
  | { readonly do: 'grow'; readonly from: string; readonly to: string; readonly record?: GrowRecord | null }
  /** It was asked for before. */
  | { readonly do: 'follow'; readonly from: string; readonly to: string }
  | { readonly do: 'nothing'; readonly from: string; readonly to: string }
  | { readonly do: 'refuse'; readonly from: string; readonly because: string }

export function planGrowth(claim: Claim, wish: GrowTarget): GrowPlan {
  const from = sizeOf(claim)
  const refuse = (because: string): GrowPlan => ({ do: 'refuse', from, because })
  if (claim.metadata.deletionTimestamp) return refuse('it is being deleted')
  const phase = claim.status?.phase ?? 'Pending'
  if (phase !== 'Bound') return refuse(`it is ${phase}, and only a claim that has its volume can grow`)
  return 'to' in wish ? planGrowthTo(claim, wish.to) : planGrowthBy(claim, wish)
}

function planGrowthTo(claim: Claim, to: string): GrowPlan {
  const record = recordOf(claim)
  return towards(claim, to, record === undefined ? {} : { record: null })
}

function planGrowthBy(claim: Claim, { by, run, goesOn }: Extract<GrowTarget, { by: string }>): GrowPlan {
  const record = recordOf(claim)
  const refuse = (because: string): GrowPlan => ({ do: 'refuse', from: sizeOf(claim), because })
  if (record === 'unreadable') return refuse(`its annotation ${GROW_RECORD} cannot be read; remove it`)
  const isOfInterrupted = record !== undefined && goesOn.includes(record.run)
  if (!isOfInterrupted) {
    // On top of a size that cannot be had there is none that can, and quota would charge it for good.
    if (isRefused(claim)) return refuse(`it asks for ${requestOf(claim)}, which cannot be had; lower its request first`)
    const to = canonicalQuantity(addQuantities(larger(requestOf(claim), capacityOf(claim)), by))
    return towards(claim, to, { record: { run, by, to } })
  }
  if (compareQuantities(record.by, by) !== 0) {
    return refuse(
      `growing it by ${record.by}, to ${record.to}, was interrupted; run that again first, or say the size by --to`,
    )
  }
  return towards(claim, record.to, { record })
}

function towards(claim: Claim, to: string, rest: { readonly record?: GrowRecord | null }): GrowPlan {
  const from = sizeOf(claim)
  const request = requestOf(claim)
  if (hasGrown(claim, to)) return { do: 'nothing', from, to }
  if (compareQuantities(request, to) < 0) return { do: 'grow', from, to, ...rest }
  if (compareQuantities(request, to) === 0) return { do: 'follow', from, to }
  const because = `it asks for ${request} already, which its volume does not have yet; growing lowers nothing: wait, or lower its request first`
  return { do: 'refuse', from, because }
}

/** How far a claim is on its way to a size. `waits` on the node: whether that is for a pod to come, its caller must find out. */
export function checkGrowth(claim: Claim | undefined, to: string): ClaimStatus | { readonly is: 'waits for a node' } {
  if (!claim) return { is: 'failed', message: 'it was deleted' }
  if (hasGrown(claim, to)) return { is: 'done', message: `grown to ${capacityOf(claim)}` }
  if (claim.metadata.deletionTimestamp) return { is: 'failed', message: 'it is being deleted' }
  const request = requestOf(claim)
  if (compareQuantities(request, to) < 0)
    return { is: 'failed', message: `its request was lowered to ${request} meanwhile` }
  const tried = claim.status?.allocatedResources?.storage
  const isTried = tried !== undefined && compareQuantities(tried, request) === 0 // else it tells of a size before
  const said = (type: string) => claim.status?.conditions?.find((one) => one.type === type)?.message
  switch (claim.status?.allocatedResourceStatuses?.storage) {
    case 'ControllerResizeInfeasible':
      if (isTried)
        return { is: 'failed', message: said('ControllerResizeError') ?? `the driver cannot make it ${tried}` }
      break
    case 'NodeResizeInfeasible':
      if (isTried) return { is: 'failed', message: said('NodeResizeError') ?? `the node cannot make it ${tried}` }
      break
    case 'ControllerResizeInProgress':
      return working(said('ControllerResizeError'), 'the storage is growing')
    case 'NodeResizeInProgress':
      return working(said('NodeResizeError'), 'the node is growing its file system')
    case 'NodeResizePending':
      return { is: 'waits for a node' }
  }
  if (said('FileSystemResizePending')) return { is: 'waits for a node' }
  return { is: 'working', message: 'asked for' }
}

const working = (failure: string | undefined, usual: string): ClaimStatus => ({
  is: 'working',
  message: failure ? `tried again: ${failure}` : usual,
})

/** The volume has the size, and nobody is still at work on it. */
const hasGrown = (claim: Claim, to: string): boolean =>
  compareQuantities(capacityOf(claim), to) >= 0 && claim.status?.allocatedResourceStatuses?.storage === undefined

/** What it asks for was refused, and nothing else has been asked for since. */
function isRefused(claim: Claim): boolean {
  const { allocatedResourceStatuses, allocatedResources } = claim.status ?? {}
  if (allocatedResourceStatuses?.storage !== 'ControllerResizeInfeasible') return false
  return compareQuantities(allocatedResources?.storage ?? '0', requestOf(claim)) === 0
}

const requestOf = ({ spec }: Claim): string => spec?.resources?.requests?.storage ?? '0'
const capacityOf = ({ status }: Claim): string => status?.capacity?.storage ?? '0'
/** What its user has now. */
const sizeOf = (claim: Claim): string => (capacityOf(claim) === '0' ? requestOf(claim) : capacityOf(claim))

const larger = (a: string, b: string): string => (compareQuantities(a, b) >= 0 ? a : b)
