// Expands one claim: writes the size together with the record, and reports the status. The plan and the meaning of a status
// are plan.ts.
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { compareQuantities } from '../../../api/quantity.ts'
import { ApiError } from '../../../api/status-error.ts'
import { type Client, keyOfObject, type ObjectRef, type WriteOptions } from '../../../client/index.ts'
import { claimsOfPod } from '../../../volumes/claims-of-pod.ts'
import {
  type Claim,
  type ClaimStatus,
  type ClaimWork,
  changeRecord,
  type FinalStatus,
  latestWarning,
  patchClaim,
  refOf,
  rejectionOf,
  type StartResult,
  startClaim,
} from '../../bulk/index.ts'
import { checkGrowth, type GrowPlan, type GrowTarget, planGrowth } from './plan.ts'
import { GROW_RECORD, recordOf, textOfRecord } from './record.ts'

const FIELD_MANAGER = 'stowage-grow'

export interface GrowingClaim extends ClaimWork {
  /** The plan when the command started. */
  readonly plan: GrowPlan
  /** Why the claim cannot grow, by the plan or by a dry run on the server; undefined if it can. */
  reject(): Promise<FinalStatus | undefined>
}

export function growingClaim(claim: Claim, target: GrowTarget, client: Client): GrowingClaim {
  const plan = planGrowth(claim, target)
  let to = 'to' in plan ? plan.to : ''

  return {
    key: keyOfObject(claim),
    plan,
    async reject() {
      if (plan.do === 'refuse') return { is: 'failed', message: plan.because }
      return plan.do === 'grow' ? rejectionOf(() => writeSize(client, claim, plan, { dryRun: true })) : undefined
    },
    start: (signal) =>
      startClaim(client, claim, signal, (now) => {
        const next = planGrowth(now, target)
        if ('to' in next) to = next.to
        switch (next.do) {
          case 'refuse':
            return { is: 'failed', message: next.because }
          case 'nothing':
            return alreadyHas(next)
          case 'follow':
            return 'follow'
          case 'grow':
            return () => writeSize(client, now, next, { signal })
        }
      }),
    async check(now) {
      const status = checkGrowth(now, to)
      return status.is === 'waits for a node' ? statusOnNode(client, now!, to) : status
    },
    explain: () => latestWarning(client, refOf(claim)),
  }
}

export const alreadyHas = ({ from }: { readonly from: string }): FinalStatus => ({
  is: 'nothing',
  message: `already has ${from}`,
})

async function writeSize(
  client: Client,
  claim: Claim,
  { to, record }: Extract<GrowPlan, { do: 'grow' }>,
  options: WriteOptions,
): Promise<StartResult> {
  const annotations = record === undefined ? undefined : { [GROW_RECORD]: record && textOfRecord(record) }
  const patch = { annotations, spec: { resources: { requests: { storage: to } } } }
  const written = await patchClaim(client, claim, patch, { fieldManager: FIELD_MANAGER, ...options })
  return { version: written.metadata.resourceVersion }
}

/** All claims have grown: a later run starts a new operation. */
export function closeRecord(client: Client, ref: ObjectRef): Promise<void> {
  const closed = (claim: Claim) => {
    const record = recordOf(claim)
    const isOpen = record !== undefined && record !== 'unreadable' && !record.closed
    return isOpen ? textOfRecord({ ...record, closed: true }) : undefined
  }
  return changeRecord(client, ref, GROW_RECORD, closed, { fieldManager: FIELD_MANAGER })
}

/** The volume is expanded. A node expands the file system when a pod uses it; without a pod there is nothing to wait for. */
async function statusOnNode(client: Client, claim: Claim, to: string): Promise<ClaimStatus> {
  const key = keyOfObject(claim)
  const { namespace } = claim.metadata
  try {
    const { items } = await client.list(podKind, { namespace })
    const user = items.find(
      (pod) =>
        claimsOfPod(pod).includes(key) &&
        pod.spec?.nodeName &&
        pod.status?.phase !== 'Succeeded' &&
        pod.status?.phase !== 'Failed',
    )
    if (user) return { is: 'working', message: `waiting for node ${user.spec?.nodeName} to expand the file system` }
    const size = claim.status?.allocatedResources?.storage ?? claim.spec?.resources?.requests?.storage ?? to
    if (compareQuantities(size, to) < 0) return { is: 'failed', message: earlierExpansion(size, to) }
    return { is: 'done', message: `volume expanded to ${size}; the file system follows when a pod next uses it` }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    // Without permission to list pods, assume that one uses the claim.
    return { is: 'working', message: 'waiting for a node to expand the file system' }
  }
}

/** An earlier expansion is not complete on the node, and only a pod can complete it. */
const earlierExpansion = (size: string, to: string): string =>
  `an earlier expansion to ${size} waits for a pod to use the volume; ${to} follows after that, in the cluster`
