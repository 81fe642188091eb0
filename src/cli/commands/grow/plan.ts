// Computes the plan and the status of one claim of `stowage grow`. Pure. grow-claim.ts writes the size; ../../bulk runs many
// claims.
import type { PersistentVolumeClaim } from '../../../api/kinds/claim/claim-schema.ts'
import { addQuantities, canonicalQuantity, compareQuantities } from '../../../api/quantity.ts'
import type { ClaimStatus } from '../../bulk/index.ts'
import { GROW_RECORD, type GrowRecord, recordOf } from './record.ts'

type Claim = Readonly<PersistentVolumeClaim>

export type GrowTarget =
  | { readonly to: string }
  /** `run` is this run's id. `resumedRuns` has the ids of this run and of the interrupted runs that it resumes. */
  | { readonly by: string; readonly run: string; readonly resumedRuns: readonly string[] }

export type GrowPlan =
  /** Write the size and the record. A record of null removes an obsolete one. */
  | { readonly do: 'grow'; readonly from: string; readonly to: string; readonly record?: GrowRecord | null }
  /** The size is already requested: wait for it. */
  | { readonly do: 'follow'; readonly from: string; readonly to: string }
  | { readonly do: 'nothing'; readonly from: string; readonly to: string }
  | { readonly do: 'refuse'; readonly from: string; readonly message: string }

export function planGrowth(claim: Claim, target: GrowTarget): GrowPlan {
  const from = sizeOf(claim)
  const refuse = (message: string): GrowPlan => ({ do: 'refuse', from, message })
  if (claim.metadata.deletionTimestamp) return refuse('the claim is being deleted')
  const phase = claim.status?.phase ?? 'Pending'
  if (phase !== 'Bound') return refuse(`the claim is ${phase}, and only a bound claim can grow`)
  return 'to' in target ? planGrowthTo(claim, target.to) : planGrowthBy(claim, target)
}

function planGrowthTo(claim: Claim, to: string): GrowPlan {
  const record = recordOf(claim)
  return planTowards(claim, to, record === undefined ? {} : { record: null })
}

function planGrowthBy(claim: Claim, { by, run, resumedRuns }: Extract<GrowTarget, { by: string }>): GrowPlan {
  const record = recordOf(claim)
  const refuse = (message: string): GrowPlan => ({ do: 'refuse', from: sizeOf(claim), message })
  if (record === 'unreadable')
    return refuse(`the annotation ${GROW_RECORD} of the claim cannot be read; remove the annotation`)
  const isInterrupted = record !== undefined && resumedRuns.includes(record.run)
  if (!isInterrupted) {
    // A size above an infeasible one is also infeasible, and the quota would still be charged for it.
    if (isInfeasible(claim)) {
      return refuse(`the claim requests ${requestOf(claim)}, which the driver cannot provide; lower the request first`)
    }
    const to = canonicalQuantity(addQuantities(maxQuantity(requestOf(claim), capacityOf(claim)), by))
    return planTowards(claim, to, { record: { run, by, to } })
  }
  if (compareQuantities(record.by, by) !== 0) {
    return refuse(
      `growing the claim by ${record.by}, to ${record.to}, was interrupted; run that command again first, or set the size with --to`,
    )
  }
  return planTowards(claim, record.to, { record })
}

function planTowards(claim: Claim, to: string, options: { readonly record?: GrowRecord | null }): GrowPlan {
  const from = sizeOf(claim)
  const request = requestOf(claim)
  if (hasGrown(claim, to)) return { do: 'nothing', from, to }
  if (compareQuantities(request, to) < 0) return { do: 'grow', from, to, ...options }
  if (compareQuantities(request, to) === 0) return { do: 'follow', from, to }
  const message = `the claim already requests ${request}, which its volume does not have yet; grow never lowers a request: wait, or lower the request first`
  return { do: 'refuse', from, message }
}

/** Returns the status of a claim that grows to a size. For `waitingForNode`, the caller checks whether a pod uses the claim. */
export function checkGrowth(claim: Claim | undefined, to: string): ClaimStatus | { readonly is: 'waitingForNode' } {
  if (!claim) return { is: 'failed', message: 'the claim was deleted', isWithdrawn: true }
  if (hasGrown(claim, to)) return { is: 'done', message: `grown to ${capacityOf(claim)}` }
  if (claim.metadata.deletionTimestamp)
    return { is: 'failed', message: 'the claim is being deleted', isWithdrawn: true }
  const request = requestOf(claim)
  if (compareQuantities(request, to) < 0)
    return { is: 'failed', message: `the request was lowered to ${request}`, isWithdrawn: true }
  const attemptedSize = claim.status?.allocatedResources?.storage
  // If the attempted size is not the requested one, the status belongs to an earlier request.
  const isAttempted = attemptedSize !== undefined && compareQuantities(attemptedSize, request) === 0
  const messageOf = (type: string) => claim.status?.conditions?.find((condition) => condition.type === type)?.message
  const failedStatus = (type: string, defaultMessage: string): ClaimStatus => ({
    is: 'failed',
    message: messageOf(type) ?? defaultMessage,
  })
  switch (claim.status?.allocatedResourceStatuses?.storage) {
    case 'ControllerResizeInfeasible':
      if (isAttempted)
        return failedStatus('ControllerResizeError', `the driver cannot expand the volume to ${attemptedSize}`)
      break
    case 'NodeResizeInfeasible':
      if (isAttempted) return failedStatus('NodeResizeError', `the node cannot expand the volume to ${attemptedSize}`)
      break
    case 'ControllerResizeInProgress':
      return workingStatus(messageOf('ControllerResizeError'), 'the driver is expanding the volume')
    case 'NodeResizeInProgress':
      return workingStatus(messageOf('NodeResizeError'), 'the node is expanding the file system')
    case 'NodeResizePending':
      return { is: 'waitingForNode' }
  }
  if (messageOf('FileSystemResizePending')) return { is: 'waitingForNode' }
  return { is: 'working', message: 'requested' }
}

const workingStatus = (failure: string | undefined, defaultMessage: string): ClaimStatus => ({
  is: 'working',
  message: failure ? `retrying: ${failure}` : defaultMessage,
})

/** Returns whether the volume has the size and no expansion is unfinished: pending, in progress or infeasible. */
const hasGrown = (claim: Claim, to: string): boolean =>
  compareQuantities(capacityOf(claim), to) >= 0 && claim.status?.allocatedResourceStatuses?.storage === undefined

/** Returns whether the driver cannot provide the current request. */
function isInfeasible(claim: Claim): boolean {
  const { allocatedResourceStatuses, allocatedResources } = claim.status ?? {}
  if (allocatedResourceStatuses?.storage !== 'ControllerResizeInfeasible') return false
  return compareQuantities(allocatedResources?.storage ?? '0', requestOf(claim)) === 0
}

const requestOf = ({ spec }: Claim): string => spec?.resources?.requests?.storage ?? '0'
const capacityOf = ({ status }: Claim): string => status?.capacity?.storage ?? '0'
/** Returns the current size, or the requested size if the claim has no capacity yet. */
const sizeOf = (claim: Claim): string => (capacityOf(claim) === '0' ? requestOf(claim) : capacityOf(claim))

const maxQuantity = (a: string, b: string): string => (compareQuantities(a, b) >= 0 ? a : b)

/** Returns a text that identifies the last attempt if the driver has rejected it, otherwise undefined. */
export function identifyRejectedAttempt(claim: Claim): string | undefined {
  if (!isInfeasible(claim)) return undefined
  const { allocatedResources, allocatedResourceStatuses, conditions } = claim.status ?? {}
  return JSON.stringify([allocatedResources, allocatedResourceStatuses, conditions])
}
