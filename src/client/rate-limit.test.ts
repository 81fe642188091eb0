import { describe, expect, it } from 'vitest'
import { secretKind } from '../api/kinds/secret/secret.ts'
import { type ManualClock, manualClock } from '../base/manual-clock.ts'
import type { Client } from './client.ts'
import { rateLimited } from './rate-limit.ts'

function limited(perSecond: number, burst: number, isAtomic = true) {
  const clock = manualClock()
  const sentMs: number[] = []
  const sent = async () => void sentMs.push(clock.monotonicMs())
  const client = {
    get: sent,
    commit: sent,
    commitsAtomically: async () => isAtomic,
    async *watch() {
      yield await sent()
    },
  } as unknown as Client
  return { clock, sentMs, client: rateLimited(client, { perSecond, burst }, clock) }
}
/** In small steps, so that each request is sent at its time. */
async function pass(clock: ManualClock, ms: number) {
  for (let passed = 0; passed < ms; passed += 100) {
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(100)
  }
}
const ref = { namespace: 'a', name: 'b' }

describe('a client with a rate limit', () => {
  it('SYS-5 sends a burst at once and the rest at the steady rate', async () => {
    const { client, clock, sentMs } = limited(5, 3)
    const all = Promise.all(Array.from({ length: 6 }, () => client.get(secretKind, ref)))
    await pass(clock, 1_000)
    await all
    expect(sentMs).toEqual([0, 0, 0, 200, 400, 600])
  })

  it('SYS-5 accumulates no more tokens than the burst', async () => {
    const { client, clock, sentMs } = limited(5, 2)
    await clock.advance(60_000)
    const all = Promise.all(Array.from({ length: 3 }, () => client.get(secretKind, ref)))
    await pass(clock, 1_000)
    await all
    expect(sentMs).toEqual([60_000, 60_000, 60_200])
  })

  it('SYS-5 counts each write of a non-atomic commit, and a watch as one request', async () => {
    const writes = Array.from({ length: 3 }, () => ({ do: 'delete', kind: secretKind, ref }) as const)
    for (const [isAtomic, nextMs] of [
      [true, 0],
      [false, 2_000],
    ] as const) {
      const { client, clock, sentMs } = limited(1, 2, isAtomic)
      const all = (async () => {
        await client.commit(writes)
        for await (const _ of client.watch(secretKind, { signal: new AbortController().signal })) break
      })()
      await pass(clock, 5_000)
      await all
      expect(sentMs[1]).toBe(nextMs)
    }
  })

  it('SYS-5 returns the token of an aborted request', async () => {
    const { client, clock, sentMs } = limited(1, 1)
    await client.get(secretKind, ref)
    const abort = new AbortController()
    const given = client.get(secretKind, ref, { signal: abort.signal })
    abort.abort()
    await expect(given).rejects.toMatchObject({ code: 499 })
    const next = client.get(secretKind, ref)
    await pass(clock, 1_000)
    await next
    expect(sentMs).toEqual([0, 1_000])
  })
})
