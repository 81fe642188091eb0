// Computes how long to wait before the next attempt to apply a remedy to a pod. A remedy (framework/plugin.ts) releases
// resources by means other than preemption. The first attempt is immediate. The backoff prevents a loop in which volumes are
// deleted and created again, for example because a capacity report is wrong.
import type { Clock, Random } from '../base/clock.ts'
import { backoffMs } from '../runtime/backoff.ts'

export interface RemedyBackoff {
  /** Returns the milliseconds until a remedy may be applied to this pod, or undefined if a wait is already in progress. */
  beginWait(podUid: string): number | undefined
  /** Ends the wait. `wasAttempted` is true if a remedy was applied or failed, which increases the next backoff. */
  endWait(podUid: string, wasAttempted: boolean): void
}

const BACKOFF = { baseMs: 10_000, maxMs: 3_600_000 }
const PODS_MAX = 10_000 // beyond this the oldest state is dropped and its pod starts without a wait

export function createRemedyBackoff(deps: { readonly clock: Clock; readonly random: Random }): RemedyBackoff {
  const { clock, random } = deps
  const pods = new Map<string, { attempts: number; notBeforeMs: number; isWaiting: boolean }>()
  return {
    beginWait(podUid) {
      const podState = pods.get(podUid) ?? { attempts: 0, notBeforeMs: 0, isWaiting: false }
      if (podState.isWaiting) return undefined
      pods.set(podUid, { ...podState, isWaiting: true })
      return Math.max(0, podState.notBeforeMs - clock.monotonicMs())
    },
    endWait(podUid, wasAttempted) {
      const { attempts, notBeforeMs } = pods.get(podUid) ?? { attempts: 0, notBeforeMs: 0 }
      pods.delete(podUid)
      if (!wasAttempted && attempts === 0) return
      const nextMs = wasAttempted ? clock.monotonicMs() + backoffMs(BACKOFF, attempts, random) : notBeforeMs
      pods.set(podUid, {
        attempts: wasAttempted ? attempts + 1 : attempts,
        notBeforeMs: nextMs,
        isWaiting: false,
      })
      if (pods.size > PODS_MAX) pods.delete(pods.keys().next().value!)
    },
  }
}
