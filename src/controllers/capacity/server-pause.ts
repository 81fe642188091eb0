// Pauses all writes while the API server fails. Each further failure doubles the pause, up to a limit, and the first success
// ends it.
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Backoff, backoffMs } from '../../runtime/backoff.ts'

export interface ServerPause {
  /** Settles when the pause is over; rejects if the signal fires first. */
  whenOver(signal: AbortSignal): Promise<void>
  recordFailure(message: string): void
  recordSuccess(): void
}

const PAUSE: Backoff = { baseMs: 1_000, maxMs: 30_000 }

export function createServerPause({ clock, random, log }: { clock: Clock; random: Random; log: Logger }): ServerPause {
  let failures = 0
  let pauseEndMs = 0
  return {
    async whenOver(signal) {
      for (;;) {
        const remainingMs = pauseEndMs - clock.monotonicMs()
        if (remainingMs <= 0) return
        await clock.sleep(remainingMs, signal)
      }
    },
    recordFailure(message) {
      const nowMs = clock.monotonicMs()
      if (nowMs < pauseEndMs) return // the request was sent before the pause started, so it is part of the same failure
      const waitMs = backoffMs(PAUSE, failures++, random)
      pauseEndMs = nowMs + waitMs
      log.warn({ reason: message, waitMs }, 'cannot write capacity objects; pausing')
    },
    recordSuccess() {
      if (failures > 0) log.info({ failures }, 'capacity objects can be written again')
      failures = 0
      pauseEndMs = 0
    },
  }
}
