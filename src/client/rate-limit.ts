// A client that asks the server no more than so often: every request takes a token from a bucket that fills at a steady
// rate, and waits for its turn when it is empty. Requests are sent in the order they were made.
import type { Clock } from '../base/clock.ts'
import type { Client, CommitWrite } from './client.ts'
import { aborted } from './http/transport.ts'

export interface RateLimit {
  readonly perSecond: number
  /** How many may go at once after a quiet time. */
  readonly burst: number
}

export function rateLimited(client: Client, { perSecond, burst }: RateLimit, clock: Clock): Client {
  let tokens = burst
  let atMs = clock.monotonicMs()

  /** A debt is a place in the line: whoever comes later owes more and waits longer. */
  async function take(count: number, signal: AbortSignal | undefined): Promise<void> {
    const nowMs = clock.monotonicMs()
    tokens = Math.min(burst, tokens + ((nowMs - atMs) / 1_000) * perSecond)
    atMs = nowMs
    tokens -= count
    if (tokens >= 0) return
    try {
      await clock.sleep((-tokens / perSecond) * 1_000, signal)
    } catch {
      tokens += count
      throw aborted()
    }
  }

  const requestsOf = async (writes: readonly CommitWrite[]) => ((await client.commitsAtomically()) ? 1 : writes.length)

  return {
    async get(kind, ref, options) {
      await take(1, options?.signal)
      return client.get(kind, ref, options)
    },
    async list(kind, request) {
      await take(1, request?.signal)
      return client.list(kind, request)
    },
    async create(kind, object, options) {
      await take(1, options?.signal)
      return client.create(kind, object, options)
    },
    async update(kind, object, options) {
      await take(1, options?.signal)
      return client.update(kind, object, options)
    },
    async patch(kind, ref, patch, options) {
      await take(1, options?.signal)
      return client.patch(kind, ref, patch, options)
    },
    async delete(kind, ref, request) {
      await take(1, request?.signal)
      return client.delete(kind, ref, request)
    },
    async *watch(kind, request) {
      if (request.signal.aborted) return
      await take(1, request.signal)
      yield* client.watch(kind, request)
    },
    async commit(writes, options) {
      if (writes.length > 0) await take(await requestsOf(writes), options?.signal)
      return client.commit(writes, options)
    },
    // Asked once each; the answers are remembered.
    commitsAtomically: () => client.commitsAtomically(),
    serves: (kind) => client.serves(kind),
  }
}
