// A claim's status as one word with a tone. A claim that waits for a pod is not a problem, so its tone is neutral.
import type { WhyLine } from '../../protocol.ts'
import type { ClaimRow } from '../rows/claim.ts'

/**
 * ok: as desired. busy: a component is working on it. wait: it waits for another change. warn: needs attention soon. bad: failed.
 */
export type Tone = 'ok' | 'busy' | 'wait' | 'warn' | 'bad'

export interface StatusWord {
  readonly word: string
  readonly tone: Tone
}

export function statusOfClaim(claim: ClaimRow, why: Pick<WhyLine, 'state' | 'reason'> | undefined): StatusWord {
  const hasFailed = why?.state === 'failed'
  if (claim.deletedMs !== undefined) return { word: 'Terminating', tone: hasFailed ? 'bad' : 'busy' }
  if (claim.phase === 'Lost') return { word: 'Lost', tone: 'bad' }
  if (claim.phase !== 'Bound') return { word: claim.phase, tone: hasFailed ? 'bad' : toneOfWaiting(why?.reason) }
  if (claim.health !== undefined) return { word: claim.health, tone: claim.health === 'Degraded' ? 'warn' : 'bad' }
  const { resizeStatus, modifyStatus } = claim
  if (resizeStatus?.endsWith('Infeasible')) return { word: 'Expansion failed', tone: 'bad' }
  if (modifyStatus === 'Infeasible') return { word: 'Change failed', tone: 'bad' }
  if (isGrowing(claim)) return { word: 'Expanding', tone: hasFailed ? 'bad' : 'busy' }
  if (modifyStatus !== undefined) return { word: 'Changing', tone: hasFailed ? 'bad' : 'busy' }
  return { word: 'Bound', tone: hasFailed ? 'warn' : 'ok' }
}

const toneOfWaiting = (reason: string | undefined): Tone =>
  reason === 'Provisioning' || reason === 'WaitingForScheduler' || reason === 'WaitingForController' ? 'busy' : 'wait'

/** Returns whether an expansion is unfinished, or the claim requests more than its volume has. */
export const isGrowing = ({ requestBytes, capacityBytes, resizeStatus }: ClaimRow): boolean =>
  resizeStatus !== undefined ||
  (requestBytes !== undefined && capacityBytes !== undefined && requestBytes > capacityBytes)
