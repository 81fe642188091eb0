// An end that comes in any case: parts that were told to stop have some time to finish what they do, then the process
// goes on without them. What they were at is on record, so the next start takes it up again.
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'

/** More than a driver gets to answer its last calls, less than whoever started us waits before it kills. */
export const STOP_MS_MAX = 8_000

/** By name: whatever is waited for. Their failures are told, not thrown. */
export async function endWithin(
  parts: Readonly<Record<string, Promise<unknown> | undefined>>,
  { clock, log, limitMs = STOP_MS_MAX }: { readonly clock: Clock; readonly log: Logger; readonly limitMs?: number },
): Promise<void> {
  const waiting = new Set<string>()
  const ends = Object.entries(parts).map(async ([name, part]) => {
    waiting.add(name)
    try {
      await part
    } catch (error) {
      log.warn({ part: name, because: error instanceof Error ? error.message : String(error) }, 'did not stop cleanly')
    } finally {
      waiting.delete(name)
    }
  })
  const all = Promise.all(ends)
  const isOver = new AbortController()
  await Promise.race([all, clock.sleep(limitMs, isOver.signal).catch(() => {})])
  isOver.abort()
  if (waiting.size === 0) return
  log.warn(
    { parts: [...waiting], waitedMs: limitMs },
    'ending without waiting longer; the next start goes on from here',
  )
}

export const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
