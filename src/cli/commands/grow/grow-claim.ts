// Expands one claim: writes the size together with the record, and checks the status. plan.ts computes the plan and
// interprets the status.
import { hasTerminated } from '../../../api/kinds/pod/has-terminated.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { compareQuantities } from '../../../api/quantity.ts'
import { ApiError } from '../../../api/status-error.ts'
import { type Client, keyOfObject, type ObjectRef, type WriteOptions } from '../../../client/index.ts'
import { claimsOfPod } from '../../../volumes/claims-of-pod.ts'
import {
  type Claim,
  type ClaimStatus,
  type ClaimTask,
  changeRecord,
  type FinalStatus,
  findRejection,
  patchClaim,
  readLatestWarning,
  refOf,
  type StartResult,
  startChange,
} from '../../bulk/index.ts'
import { checkGrowth, type GrowPlan, type GrowTarget, identifyRejectedAttempt, planGrowth } from './plan.ts'
import { encodeRecord, GROW_RECORD, recordOf } from './record.ts'

export const FIELD_MANAGER = 'stowage-grow'

export interface GrowTask extends ClaimTask {
  /** The plan at the start of the command. */
  readonly plan: GrowPlan
  /** Returns a failure if the plan or a dry run on the server shows that the claim cannot grow, otherwise undefined. */
  findRejection(): Promise<FinalStatus | undefined>
}

export function createGrowTask(claim: Claim, target: GrowTarget, client: Client): GrowTask {
  const plan = planGrowth(claim, target)
  let to = 'to' in plan ? plan.to : ''
  /** The attempt that had failed when this run started. The driver may accept the next one. */
  let earlierAttempt: string | undefined

  return {
    key: keyOfObject(claim),
    plan,
    async findRejection() {
      if (plan.do === 'refuse') return { is: 'failed', message: plan.message }
      return plan.do === 'grow' ? findRejection(() => writeSize(client, claim, plan, { dryRun: true })) : undefined
    },
    start: (signal) =>
      startChange(client, claim, signal, (currentClaim) => {
        const currentPlan = planGrowth(currentClaim, target)
        if ('to' in currentPlan) to = currentPlan.to
        switch (currentPlan.do) {
          case 'refuse':
            return { is: 'failed', message: currentPlan.message }
          case 'nothing':
            return createGrownStatus(currentPlan)
          case 'follow':
            earlierAttempt = identifyRejectedAttempt(currentClaim)
            return 'follow'
          case 'grow':
            return () => writeSize(client, currentClaim, currentPlan, { signal })
        }
      }),
    async check(currentClaim) {
      const status = checkGrowth(currentClaim, to)
      if (
        status.is === 'failed' &&
        currentClaim &&
        identifyRejectedAttempt(currentClaim) === earlierAttempt &&
        earlierAttempt !== undefined
      ) {
        return { is: 'working', message: `waiting for the next attempt: ${status.message}` }
      }
      earlierAttempt = undefined
      return status.is === 'waitingForNode' ? checkOnNode(client, currentClaim!, to) : status
    },
    explain: () => readLatestWarning(client, refOf(claim)),
  }
}

export const createGrownStatus = ({ from }: { readonly from: string }): FinalStatus => ({
  is: 'nothing',
  message: `already has ${from}`,
})

async function writeSize(
  client: Client,
  claim: Claim,
  { to, record }: Extract<GrowPlan, { do: 'grow' }>,
  options: WriteOptions,
): Promise<StartResult> {
  const annotations = record === undefined ? undefined : { [GROW_RECORD]: record && encodeRecord(record) }
  const patch = { annotations, spec: { resources: { requests: { storage: to } } } }
  const updatedClaim = await patchClaim(client, claim, patch, { fieldManager: FIELD_MANAGER, ...options })
  return { version: updatedClaim.metadata.resourceVersion }
}

/** Marks an open record as closed, so that the next run is a new one. Called when all claims of the run have grown. */
export function closeRecord(client: Client, ref: ObjectRef): Promise<void> {
  const closeIfOpen = (claim: Claim) => {
    const record = recordOf(claim)
    const isOpen = record !== undefined && record !== 'unreadable' && !record.closed
    return isOpen ? encodeRecord({ ...record, closed: true }) : undefined
  }
  return changeRecord(client, ref, GROW_RECORD, closeIfOpen, { fieldManager: FIELD_MANAGER })
}

/**
 * Returns the status of a claim whose volume is expanded, but not its file system. A node expands the file system while a pod
 * uses the claim; without such a pod, nothing remains to be done.
 */
async function checkOnNode(client: Client, claim: Claim, to: string): Promise<ClaimStatus> {
  const key = keyOfObject(claim)
  const { namespace } = claim.metadata
  try {
    const { items } = await client.list(podKind, { namespace })
    const userPod = items.find((pod) => claimsOfPod(pod).includes(key) && pod.spec?.nodeName && !hasTerminated(pod))
    if (userPod) {
      return { is: 'working', message: `waiting for node ${userPod.spec?.nodeName} to expand the file system` }
    }
    const size = claim.status?.allocatedResources?.storage ?? claim.spec?.resources?.requests?.storage ?? to
    if (compareQuantities(size, to) < 0) return { is: 'failed', message: earlierExpansionMessage(size, to) }
    return { is: 'done', message: `volume expanded to ${size}; the file system is expanded when a pod next uses it` }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    // Without permission to list pods, assume that one uses the claim.
    return { is: 'working', message: 'waiting for a node to expand the file system' }
  }
}

/** Returns the message for an earlier expansion that completes only when a pod uses the volume. */
const earlierExpansionMessage = (size: string, to: string): string =>
  `an earlier expansion to ${size} waits for a pod to use the volume; the expansion to ${to} follows in the cluster`
