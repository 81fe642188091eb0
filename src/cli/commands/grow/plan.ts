// The plan and the status of one claim of `stowage grow`. Pure. Writing the size is grow-claim.ts; running many claims is
// ../../bulk.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { addQuantities, canonicalQuantity, compareQuantities } from '../../../api/quantity.ts'
import type { ClaimStatus } from '../../bulk/index.ts'
import { GROW_RECORD, type GrowRecord, recordOf } from './record.ts'

type Claim = Readonly<PersistentVolumeClaim>

export type GrowTarget =
  | { readonly to: string }
  /** `run` is the id of this run; `resumes` are the runs whose records apply: this one and the interrupted ones. */
  | { readonly by: string; readonly run: string; readonly resumes: readonly string[] }

export type GrowPlan =
  /** `record` is written together with the size; null removes an obsolete one. */
  | { readonly do: 'grow'; readonly from: string; readonly to: string; readonly record?: GrowRecord | null }
  /** The size is already requested. */
  | { readonly do: 'follow'; readonly from: string; readonly to: string }
  | { readonly do: 'nothing'; readonly from: string; readonly to: string }
  | { readonly do: 'refuse'; readonly from: string; readonly because: string }

export function planGrowth(claim: Claim, target: GrowTarget): GrowPlan {
  const from = sizeOf(claim)
  const refuse = (because: string): GrowPlan => ({ do: 'refuse', from, because })
  if (claim.metadata.deletionTimestamp) return refuse('it is being deleted')
  const phase = claim.status?.phase ?? 'Pending'
  if (phase !== 'Bound') return refuse(`it is ${phase}, and only a bound claim can grow`)
  return 'to' in target ? planGrowthTo(claim, target.to) : planGrowthBy(claim, target)
}

function planGrowthTo(claim: Claim, to: string): GrowPlan {
  const record = recordOf(claim)
  return towards(claim, to, record === undefined ? {} : { record: null })
}

function planGrowthBy(claim: Claim, { by, run, resumes }: Extract<GrowTarget, { by: string }>): GrowPlan {
  const record = recordOf(claim)
  const refuse = (because: string): GrowPlan => ({ do: 'refuse', from: sizeOf(claim), because })
  if (record === 'unreadable') return refuse(`its annotation ${GROW_RECORD} cannot be read; remove it`)
  const isInterrupted = record !== undefined && resumes.includes(record.run)
  if (!isInterrupted) {
    // A size above an infeasible one is infeasible too, and quota would keep charging for it.
    if (isInfeasible(claim)) {
      return refuse(`it requests ${requestOf(claim)}, which the driver cannot provide; lower its request first`)
    }
    const to = canonicalQuantity(addQuantities(larger(requestOf(claim), capacityOf(claim)), by))
    return towards(claim, to, { record: { run, by, to } })
  }
  if (compareQuantities(record.by, by) !== 0) {
    return refuse(
      `growing it by ${record.by}, to ${record.to}, was interrupted; run that command again first, or set the size with --to`,
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
  const because = `it already requests ${request}, which its volume does not have yet; grow never lowers a request: wait, or lower it first`
  return { do: 'refuse', from, because }
}

/** The status of a claim that grows to a size. `waits for a node`: the caller finds out whether a pod uses the claim. */
export function checkGrowth(claim: Claim | undefined, to: string): ClaimStatus | { readonly is: 'waits for a node' } {
  if (!claim) return { is: 'failed', message: 'it was deleted' }
  if (hasGrown(claim, to)) return { is: 'done', message: `grown to ${capacityOf(claim)}` }
  if (claim.metadata.deletionTimestamp) return { is: 'failed', message: 'it is being deleted' }
  const request = requestOf(claim)
  if (compareQuantities(request, to) < 0)
    return { is: 'failed', message: `its request was lowered to ${request} meanwhile` }
  const attempted = claim.status?.allocatedResources?.storage
  // Otherwise the status is that of an earlier size.
  const isAttempted = attempted !== undefined && compareQuantities(attempted, request) === 0
  const condition = (type: string) => claim.status?.conditions?.find((one) => one.type === type)?.message
  const failed = (type: string, usual: string): ClaimStatus => ({ is: 'failed', message: condition(type) ?? usual })
  switch (claim.status?.allocatedResourceStatuses?.storage) {
    case 'ControllerResizeInfeasible':
      if (isAttempted) return failed('ControllerResizeError', `the driver cannot expand it to ${attempted}`)
      break
    case 'NodeResizeInfeasible':
      if (isAttempted) return failed('NodeResizeError', `the node cannot expand it to ${attempted}`)
      break
    case 'ControllerResizeInProgress':
      return working(condition('ControllerResizeError'), 'the driver is expanding the volume')
    case 'NodeResizeInProgress':
      return working(condition('NodeResizeError'), 'the node is expanding the file system')
    case 'NodeResizePending':
      return { is: 'waits for a node' }
  }
  if (condition('FileSystemResizePending')) return { is: 'waits for a node' }
  return { is: 'working', message: 'requested' }
}

const working = (failure: string | undefined, usual: string): ClaimStatus => ({
  is: 'working',
  message: failure ? `retrying: ${failure}` : usual,
})

/** The volume has the size, and no expansion is in progress. */
const hasGrown = (claim: Claim, to: string): boolean =>
  compareQuantities(capacityOf(claim), to) >= 0 && claim.status?.allocatedResourceStatuses?.storage === undefined

/** The driver cannot provide the requested size, and the request has not changed since. */
function isInfeasible(claim: Claim): boolean {
  const { allocatedResourceStatuses, allocatedResources } = claim.status ?? {}
  if (allocatedResourceStatuses?.storage !== 'ControllerResizeInfeasible') return false
  return compareQuantities(allocatedResources?.storage ?? '0', requestOf(claim)) === 0
}

const requestOf = ({ spec }: Claim): string => spec?.resources?.requests?.storage ?? '0'
const capacityOf = ({ status }: Claim): string => status?.capacity?.storage ?? '0'
/** The current size; before the volume reports one, the requested size. */
const sizeOf = (claim: Claim): string => (capacityOf(claim) === '0' ? requestOf(claim) : capacityOf(claim))

const larger = (a: string, b: string): string => (compareQuantities(a, b) >= 0 ? a : b)
