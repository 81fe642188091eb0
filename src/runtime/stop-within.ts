// Bounds how long a process waits for its parts to stop. A part that does not stop in time is left behind; its unfinished
// work is recorded in the API, and the next process resumes it.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'

/** Longer than a driver needs to answer its last calls, shorter than supervisors wait before SIGKILL. */
export const STOP_MS_MAX = 8_000

/** Waits for all parts, at most `limitMs`. A part that rejects is logged. */
export async function stopWithin(
  parts: Readonly<Record<string, Promise<unknown> | undefined>>,
  { clock, log, limitMs = STOP_MS_MAX }: { readonly clock: Clock; readonly log: Logger; readonly limitMs?: number },
): Promise<void> {
  const pending = new Set<string>()
  const stopping = Object.entries(parts).map(async ([name, part]) => {
    pending.add(name)
    try {
      await part
    } catch (error) {
      log.warn({ part: name, because: error instanceof Error ? error.message : String(error) }, 'did not stop cleanly')
    } finally {
      pending.delete(name)
    }
  })
  const allStopped = new AbortController()
  await Promise.race([Promise.all(stopping), clock.sleep(limitMs, allStopped.signal).catch(() => {})])
  allStopped.abort()
  if (pending.size === 0) return
  log.warn(
    { parts: [...pending], waitedMs: limitMs },
    'exiting before these parts have stopped; the next start resumes their work',
  )
}

export interface StopLimit {
  readonly signal: AbortSignal
  readonly clock: Clock
  /** Counted from the signal. */
  readonly limitMs: number
}

/** Settles with the work, or with 'abandoned' when the work still runs `limitMs` after the signal. */
export function withinStopLimit(
  work: Promise<void>,
  { signal, clock, limitMs }: StopLimit,
): Promise<'stopped' | 'abandoned'> {
  const over = new AbortController()
  return new Promise((resolve, reject) => {
    const startLimit = () => {
      // clock.sleep, not clock.after: the timer of `after` does not keep the process alive.
      clock.sleep(limitMs, over.signal).then(
        () => resolve('abandoned'),
        () => {}, // the work stopped first
      )
    }
    const end = () => {
      over.abort()
      signal.removeEventListener('abort', startLimit)
    }
    if (signal.aborted) startLimit()
    else signal.addEventListener('abort', startLimit, { once: true })
    work.finally(end).then(() => resolve('stopped'), reject)
  })
}
