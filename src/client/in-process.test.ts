import { describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map.ts'
import { ApiError } from '../api/status-error.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { startTrial } from '../apiserver/server-trial.ts'
import { clientContract } from './client-contract.ts'
import { inProcessClient } from './in-process.ts'
import { WATCH_BACKLOG_EVENTS_MAX } from './in-process-watch.ts'

const open = async () => {
  const trial = await startTrial({ history: { entriesMax: 50 } })
  return { trial, client: inProcessClient(trial.server.objects, SYSTEM_USER), stop: () => trial.store.close() }
}

describe('the in-process client', () => {
  clientContract(open)

  const map = (name: string) => ({ metadata: { namespace: 'default', name }, data: { k: 'v' } })

  it('shares one frozen object among everyone who reads the same version', async () => {
    const { client } = await open()
    const created = await client.create(configMapKind, map('a'))
    const closing = new AbortController()
    expect(await client.get(configMapKind, { namespace: 'default', name: 'a' })).toBe(created)
    expect((await client.list(configMapKind)).items[0]).toBe(created)
    for await (const event of client.watch(configMapKind, { sendInitialEvents: true, signal: closing.signal })) {
      expect(event.type === 'added' && event.object).toBe(created)
      break
    }
  })

  it('refuses fields that no kind has: they would be a mistake of ours', async () => {
    const { client } = await open()
    await expect(client.create(configMapKind, { ...map('a'), dta: {} } as any)).rejects.toMatchObject({
      code: 400,
      message: expect.stringContaining('unknown field "dta"'),
    })
  })

  it('gives a watcher that never reads a bounded backlog, then the end; it resumes without a gap', async () => {
    const { client, trial } = await open()
    const big = await startTrial()
    const other = inProcessClient(big.server.objects, SYSTEM_USER)
    void client
    void trial
    const closing = new AbortController()
    await other.create(configMapKind, map('a'))
    const from = big.store.revision
    const stream = other.watch(configMapKind, { resourceVersion: String(from), signal: closing.signal })
    const events = stream[Symbol.asyncIterator]()
    const first = events.next()
    const writes = WATCH_BACKLOG_EVENTS_MAX + 100
    for (let i = 0; i < writes; i++) {
      const body = { data: { i: String(i) } }
      await other.patch(configMapKind, { namespace: 'default', name: 'a' }, { type: 'merge', body })
    }
    const versions: number[] = []
    for (let next = await first; !next.done; next = await events.next()) {
      if (next.value.type !== 'bookmark') versions.push(Number(next.value.object.metadata.resourceVersion))
    }
    expect(versions.length).toBeGreaterThanOrEqual(WATCH_BACKLOG_EVENTS_MAX)
    expect(versions.length).toBeLessThan(writes)
    const last = versions.at(-1)!
    for await (const event of other.watch(configMapKind, { resourceVersion: String(last), signal: closing.signal })) {
      expect(event.type === 'modified' && event.object.metadata.resourceVersion).toBe(String(last + 1))
      break
    }
  })

  it('answers 503 once the store is closed', async () => {
    const { client, trial } = await open()
    await trial.store.close()
    const error = await client.create(configMapKind, map('a')).catch((reason) => reason)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ code: 503, reason: 'ServiceUnavailable' })
  })
})
