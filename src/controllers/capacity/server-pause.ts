// Pauses all writes while the API server fails: the first failure pauses for a while, each further one for twice as long,
// and the first success ends it. Waiting work then continues; only failed writes are retried.
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type Backoff, backoffMs } from '../../runtime/backoff.ts'

export interface ServerPause {
  /** Settles when the pause is over; rejects if the signal fires first. */
  over(signal: AbortSignal): Promise<void>
  failed(because: string): void
  succeeded(): void
}

const PAUSE: Backoff = { baseMs: 1_000, maxMs: 30_000 }

export function createServerPause({ clock, random, log }: { clock: Clock; random: Random; log: Logger }): ServerPause {
  let failures = 0
  let untilMs = 0
  return {
    async over(signal) {
      for (;;) {
        const leftMs = untilMs - clock.monotonicMs()
        if (leftMs <= 0) return
        await clock.sleep(leftMs, signal)
      }
    },
    failed(because) {
      const nowMs = clock.monotonicMs()
      if (nowMs < untilMs) return // sent before the pause began: the same failure
      const waitMs = backoffMs(PAUSE, failures++, random)
      untilMs = nowMs + waitMs
      log.warn({ because, waitMs }, 'cannot write capacity objects; pausing')
    },
    succeeded() {
      if (failures > 0) log.info({ failures }, 'capacity objects can be written again')
      failures = 0
      untilMs = 0
    },
  }
}
