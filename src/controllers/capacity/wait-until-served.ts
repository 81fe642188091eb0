// Waits until the API server serves a kind, which may be disabled or installed later. Logs once that it is waiting.
import type { Kind } from '../../api/kind.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { type Backoff, backoffMs } from '../../runtime/backoff.ts'

export interface WaitUntilServedDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

const RETRY: Backoff = { baseMs: 5_000, maxMs: 60_000 }

/** Returns false if the signal fires first. */
export async function waitUntilServed(
  kind: Kind,
  deps: WaitUntilServedDeps,
  signal: AbortSignal,
  retry: Backoff = RETRY,
): Promise<boolean> {
  const { client, clock, random, log } = deps
  for (let attempt = 0; !signal.aborted; attempt++) {
    let message = `the API server does not serve ${kind.plural}`
    try {
      if (await client.serves(kind)) return true
    } catch (error) {
      message = (error as Error).message
    }
    if (attempt === 0) log.info({ kind: kind.kind, reason: message }, 'waiting for the API server to serve the kind')
    await clock.sleep(backoffMs(retry, attempt, random), signal).catch(() => {})
  }
  return false
}
