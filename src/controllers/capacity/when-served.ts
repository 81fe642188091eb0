// Waits until the server serves a kind: it may be switched off there, or come later. Waiting is no error and says so
// once.
import type { Kind } from '../../api/kind.ts'
import type { Clock, Random } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { type Backoff, backoffMs } from '../../runtime/backoff.ts'

export interface WhenServedDeps {
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

const ASK_AGAIN: Backoff = { baseMs: 5_000, maxMs: 60_000 }

/** False when the signal fired first. */
export async function whenServed(
  kind: Kind,
  deps: WhenServedDeps,
  signal: AbortSignal,
  askAgain: Backoff = ASK_AGAIN,
): Promise<boolean> {
  const { client, clock, random, log } = deps
  for (let tries = 0; !signal.aborted; tries++) {
    let because = `it does not serve ${kind.plural}`
    try {
      if (await client.serves(kind)) return true
    } catch (error) {
      because = (error as Error).message
    }
    if (tries === 0) log.info({ kind: kind.kind, because }, 'waiting for the server')
    await clock.sleep(backoffMs(askAgain, tries, random), signal).catch(() => {})
  }
  return false
}
