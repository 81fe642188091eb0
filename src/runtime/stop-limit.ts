// How long an orderly stop may take. A plugin that ignores its signal would keep the process for ever; what it makes
// after that is found by the next process, which sees the intent on the claim.
import type { Clock } from '../base/clock.ts'

export interface StopLimit {
  readonly signal: AbortSignal
  readonly clock: Clock
  /** From the signal on. */
  readonly limitMs: number
}

/** Settles with the work, or says that it went on for too long after the signal. */
export function withinStopLimit(
  work: Promise<void>,
  { signal, clock, limitMs }: StopLimit,
): Promise<'ended' | 'abandoned'> {
  const over = new AbortController()
  return new Promise((resolve, reject) => {
    const startLimit = () => {
      // Not clock.after, whose timer does not keep a process that has nothing else to wait for.
      clock.sleep(limitMs, over.signal).then(
        () => resolve('abandoned'),
        () => {}, // the work ended first
      )
    }
    const end = () => {
      over.abort()
      signal.removeEventListener('abort', startLimit)
    }
    if (signal.aborted) startLimit()
    else signal.addEventListener('abort', startLimit, { once: true })
    work.finally(end).then(() => resolve('ended'), reject)
  })
}
