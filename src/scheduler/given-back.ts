// How often a pod's volumes have been given back to be made elsewhere, and how long to wait before the next time. A report
// that is wrong could promise room for ever that is not there: volumes must not be made and deleted as fast as that.
import type { Clock, Random } from '../base/clock.ts'
import { backoffMs } from '../runtime/backoff.ts'

export interface GivenBack {
  /** How long from now, before the volumes of this pod may be given back; undefined while that is waited for already. */
  beginWait(podUid: string): number | undefined
  /** The wait is over, with the volumes given back or not. */
  endWait(podUid: string, isGivenBack: boolean): void
}

const AGAIN = { baseMs: 10_000, maxMs: 3_600_000 }
const PODS_MAX = 10_000 // beyond this the pod that has gone longest without is forgotten, and starts with short waits

export function createGivenBack({ clock, random }: { readonly clock: Clock; readonly random: Random }): GivenBack {
  const pods = new Map<string, { times: number; notBeforeMs: number; isWaiting: boolean }>()
  return {
    beginWait(podUid) {
      const known = pods.get(podUid) ?? { times: 0, notBeforeMs: 0, isWaiting: false }
      if (known.isWaiting) return undefined
      pods.set(podUid, { ...known, isWaiting: true })
      return Math.max(0, known.notBeforeMs - clock.monotonicMs())
    },
    endWait(podUid, isGivenBack) {
      const { times, notBeforeMs } = pods.get(podUid) ?? { times: 0, notBeforeMs: 0 }
      pods.delete(podUid)
      if (!isGivenBack && times === 0) return
      const nextMs = isGivenBack ? clock.monotonicMs() + backoffMs(AGAIN, times, random) : notBeforeMs
      pods.set(podUid, { times: isGivenBack ? times + 1 : times, notBeforeMs: nextMs, isWaiting: false })
      if (pods.size > PODS_MAX) pods.delete(pods.keys().next().value!)
    },
  }
}
