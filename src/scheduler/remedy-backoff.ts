// How long to wait before a remedy is applied to a pod again. The first time is immediate. If a remedy does not help, for
// example because a capacity report is wrong, volumes must not be deleted and created in a tight loop.
import type { Clock, Random } from '../base/clock.ts'
import { backoffMs } from '../runtime/backoff.ts'

export interface RemedyBackoff {
  /** Milliseconds until a remedy may be applied to this pod; undefined while an earlier call is still waiting. */
  beginWait(podUid: string): number | undefined
  endWait(podUid: string, isApplied: boolean): void
}

const BACKOFF = { baseMs: 10_000, maxMs: 3_600_000 }
const PODS_MAX = 10_000 // beyond this the pod that was added first is forgotten and starts without a wait

export function createRemedyBackoff(deps: { readonly clock: Clock; readonly random: Random }): RemedyBackoff {
  const { clock, random } = deps
  const pods = new Map<string, { times: number; notBeforeMs: number; isWaiting: boolean }>()
  return {
    beginWait(podUid) {
      const known = pods.get(podUid) ?? { times: 0, notBeforeMs: 0, isWaiting: false }
      if (known.isWaiting) return undefined
      pods.set(podUid, { ...known, isWaiting: true })
      return Math.max(0, known.notBeforeMs - clock.monotonicMs())
    },
    endWait(podUid, isApplied) {
      const { times, notBeforeMs } = pods.get(podUid) ?? { times: 0, notBeforeMs: 0 }
      pods.delete(podUid)
      if (!isApplied && times === 0) return
      const nextMs = isApplied ? clock.monotonicMs() + backoffMs(BACKOFF, times, random) : notBeforeMs
      pods.set(podUid, { times: isApplied ? times + 1 : times, notBeforeMs: nextMs, isWaiting: false })
      if (pods.size > PODS_MAX) pods.delete(pods.keys().next().value!)
    },
  }
}
