import { expect, it } from 'vitest'
import { tooManyRequests } from '../../../../api/status-error.ts'
import { manualClock } from '../../../../base/manual-clock.ts'
import type { Client } from '../../../../client/index.ts'
import type { Snapshot } from '../../../../diagnosis/index.ts'
import { drainNode } from './drain.ts'

it('drainNode reports a pod whose eviction was accepted after a rejection as being deleted', async () => {
  let evictions = 0
  const client = {
    get: async () => ({
      metadata: { uid: 'u1', ...(evictions > 1 ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    }),
    create: async () => {
      if (++evictions === 1) throw tooManyRequests('the disruption budget needs 1 healthy pod')
      return {}
    },
    list: async () => ({ items: [] }),
  } as unknown as Client
  const clock = manualClock()
  const pod = { namespace: 'shop', name: 'web-0', uid: 'u1', action: 'evict' } as const
  const drain = drainNode(
    { node: 'a', isCordoned: true, pods: [pod] },
    { pods: [], claims: [] } as unknown as Snapshot,
    { timeoutMs: 3_000 },
    { client, clock, signal: new AbortController().signal, onProgress() {} },
  )
  for (let second = 0; second < 3; second++) {
    await clock.nextTurn()
    await clock.advance(1_000)
  }
  expect(await drain).toMatchObject({
    isDrained: false,
    waitingPods: [{ pod: 'shop/web-0', message: 'the pod is being deleted' }],
  })
})
