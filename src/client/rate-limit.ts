// Limits the rate of a client's requests with a token bucket: a request takes a token and waits if there is none.

import { requestAborted } from '../api/status-error.ts'
import type { Clock } from '../base/clock.ts'
import type { Client, CommitWrite } from './client.ts'

export interface RateLimit {
  readonly perSecond: number
  /** Maximum number of requests without delay after an idle period. */
  readonly burst: number
}

export function limitRate(client: Client, { perSecond, burst }: RateLimit, clock: Clock): Client {
  let tokens = burst
  let refilledAtMs = clock.monotonicMs()

  /** Takes tokens, and waits if there are too few. The balance becomes negative, so that a further request waits longer. */
  async function takeTokens(count: number, signal: AbortSignal | undefined): Promise<void> {
    const nowMs = clock.monotonicMs()
    tokens = Math.min(burst, tokens + ((nowMs - refilledAtMs) / 1_000) * perSecond)
    refilledAtMs = nowMs
    tokens -= count
    if (tokens >= 0) return
    try {
      await clock.sleep((-tokens / perSecond) * 1_000, signal)
    } catch {
      tokens += count
      throw requestAborted()
    }
  }

  const countRequests = async (writes: readonly CommitWrite[]) =>
    (await client.commitsAtomically()) ? 1 : writes.length

  return {
    async get(kind, ref, options) {
      await takeTokens(1, options?.signal)
      return client.get(kind, ref, options)
    },
    async list(kind, request) {
      await takeTokens(1, request?.signal)
      return client.list(kind, request)
    },
    async create(kind, object, options) {
      await takeTokens(1, options?.signal)
      return client.create(kind, object, options)
    },
    async update(kind, object, options) {
      await takeTokens(1, options?.signal)
      return client.update(kind, object, options)
    },
    async patch(kind, ref, patch, options) {
      await takeTokens(1, options?.signal)
      return client.patch(kind, ref, patch, options)
    },
    async delete(kind, ref, request) {
      await takeTokens(1, request?.signal)
      return client.delete(kind, ref, request)
    },
    async *watch(kind, request) {
      if (request.signal.aborted) return
      await takeTokens(1, request.signal)
      yield* client.watch(kind, request)
    },
    async commit(writes, options) {
      if (writes.length > 0) await takeTokens(await countRequests(writes), options?.signal)
      return client.commit(writes, options)
    },
    // Not limited, because most results are cached.
    commitsAtomically: () => client.commitsAtomically(),
    serves: (kind) => client.serves(kind),
  }
}
