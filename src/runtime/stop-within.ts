// Limits how long a process waits for its parts to stop.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'

/** Shorter than the 10 seconds that Docker waits before SIGKILL. */
const STOP_MS_MAX = 8_000

/** Waits for all parts, but at most `limitMs`. Logs the parts that reject or are still running. */
export async function stopWithin(
  parts: Readonly<Record<string, Promise<unknown> | undefined>>,
  { clock, log, limitMs = STOP_MS_MAX }: { readonly clock: Clock; readonly log: Logger; readonly limitMs?: number },
): Promise<void> {
  const pendingParts = new Set<string>()
  const stops = Object.entries(parts).map(async ([name, part]) => {
    pendingParts.add(name)
    try {
      await part
    } catch (error) {
      log.warn({ part: name, reason: error instanceof Error ? error.message : String(error) }, 'did not stop cleanly')
    } finally {
      pendingParts.delete(name)
    }
  })
  const allStopped = new AbortController()
  await Promise.race([Promise.all(stops), clock.sleep(limitMs, allStopped.signal).catch(() => {})])
  allStopped.abort()
  if (pendingParts.size === 0) return
  log.warn(
    { parts: [...pendingParts], waitedMs: limitMs },
    'exiting before these parts have stopped; the next start resumes their work',
  )
}

export interface StopLimit {
  readonly signal: AbortSignal
  readonly clock: Clock
  /** The limit, which starts when the signal is aborted. */
  readonly limitMs: number
}

/**
 * Settles with the work, or resolves to 'abandoned' if the work is still running `limitMs` after the signal is aborted.
 */
export function awaitWithStopLimit(
  work: Promise<void>,
  { signal, clock, limitMs }: StopLimit,
): Promise<'stopped' | 'abandoned'> {
  const workSettled = new AbortController()
  return new Promise((resolve, reject) => {
    const startLimit = () => {
      // Use clock.sleep, because the timer of clock.after does not keep the process alive.
      clock.sleep(limitMs, workSettled.signal).then(
        () => resolve('abandoned'),
        () => {}, // the work stopped first
      )
    }
    const cleanUp = () => {
      workSettled.abort()
      signal.removeEventListener('abort', startLimit)
    }
    if (signal.aborted) startLimit()
    else signal.addEventListener('abort', startLimit, { once: true })
    work.finally(cleanUp).then(() => resolve('stopped'), reject)
  })
}
