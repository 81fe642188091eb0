import { describe, expect, it } from 'vitest'
import { secretKind } from '../api/kinds/secret/secret.ts'
import { type ManualClock, manualClock } from '../base/manual-clock.ts'
import type { Client } from './client.ts'
import { limitRate } from './rate-limit.ts'

function createLimitedClient(perSecond: number, burst: number, isAtomic = true) {
  const clock = manualClock()
  const sentMs: number[] = []
  const record = async () => void sentMs.push(clock.monotonicMs())
  const client = {
    get: record,
    commit: record,
    commitsAtomically: async () => isAtomic,
    async *watch() {
      yield await record()
    },
  } as unknown as Client
  return { clock, sentMs, client: limitRate(client, { perSecond, burst }, clock) }
}
/** Advances the clock in steps of 100 ms, so that each request is sent at its time. */
async function advanceInSteps(clock: ManualClock, ms: number) {
  for (let elapsedMs = 0; elapsedMs < ms; elapsedMs += 100) {
    await new Promise((resolve) => setImmediate(resolve))
    await clock.advance(100)
  }
}
const ref = { namespace: 'a', name: 'b' }

describe('limitRate', () => {
  it('sends a burst without delay and later requests at the steady rate', async () => {
    const { client, clock, sentMs } = createLimitedClient(5, 3)
    const requests = Promise.all(Array.from({ length: 6 }, () => client.get(secretKind, ref)))
    await advanceInSteps(clock, 1_000)
    await requests
    expect(sentMs).toEqual([0, 0, 0, 200, 400, 600])
  })

  it('accumulates no more tokens than the burst', async () => {
    const { client, clock, sentMs } = createLimitedClient(5, 2)
    await clock.advance(60_000)
    const requests = Promise.all(Array.from({ length: 3 }, () => client.get(secretKind, ref)))
    await advanceInSteps(clock, 1_000)
    await requests
    expect(sentMs).toEqual([60_000, 60_000, 60_200])
  })

  it('counts an atomic commit and a watch as one request each, and a non-atomic commit as one request per write', async () => {
    const writes = Array.from({ length: 3 }, () => ({ do: 'delete', kind: secretKind, ref }) as const)
    for (const [isAtomic, nextMs] of [
      [true, 0],
      [false, 2_000],
    ] as const) {
      const { client, clock, sentMs } = createLimitedClient(1, 2, isAtomic)
      const requests = (async () => {
        await client.commit(writes)
        for await (const _ of client.watch(secretKind, { signal: new AbortController().signal })) break
      })()
      await advanceInSteps(clock, 5_000)
      await requests
      expect(sentMs[1]).toBe(nextMs)
    }
  })

  it('returns the token of an aborted request', async () => {
    const { client, clock, sentMs } = createLimitedClient(1, 1)
    await client.get(secretKind, ref)
    const abort = new AbortController()
    const abortedRequest = client.get(secretKind, ref, { signal: abort.signal })
    abort.abort()
    await expect(abortedRequest).rejects.toMatchObject({ code: 499 })
    const nextRequest = client.get(secretKind, ref)
    await advanceInSteps(clock, 1_000)
    await nextRequest
    expect(sentMs).toEqual([0, 1_000])
  })
})
