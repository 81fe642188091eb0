import { describe, expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { ApiError } from '../../api/status-error.ts'
import { clientContract } from '../../client/client.contract.ts'
import { COMMIT_WRITES_MAX, SYSTEM_USER } from '../index.ts'
import { createServerFixture, type Json } from '../server.fixture.ts'
import { inProcessClient } from './client.ts'
import { WATCH_BACKLOG_EVENTS_MAX } from './watch.ts'

const REVIEW_KIND = ALL_KINDS.find(({ kind }) => kind === 'SelfSubjectAccessReview')!

const open = async () => {
  const api = await createServerFixture({ history: { entriesMax: 50 } })
  return { api, client: inProcessClient(api.server.objects, SYSTEM_USER), stop: () => api.store.close() }
}

describe('the in-process client', () => {
  clientContract(open)

  const aConfigMap = (name: string) => ({ metadata: { namespace: 'default', name }, data: { k: 'v' } })

  it('shares one frozen object among all readers of the same version', async () => {
    const { client } = await open()
    const created = await client.create(configMapKind, aConfigMap('a'))
    const closing = new AbortController()
    expect(await client.get(configMapKind, { namespace: 'default', name: 'a' })).toBe(created)
    expect((await client.list(configMapKind)).items[0]).toBe(created)
    for await (const event of client.watch(configMapKind, { sendInitialEvents: true, signal: closing.signal })) {
      expect(event.type === 'added' && event.object).toBe(created)
      break
    }
  })

  it('rejects unknown fields', async () => {
    const { client } = await open()
    await expect(client.create(configMapKind, { ...aConfigMap('a'), dta: {} } as Json)).rejects.toMatchObject({
      code: 400,
      message: expect.stringContaining('unknown field "dta"'),
    })
  })

  it('ends a watch with too many unread events, and resumes it without a gap', async () => {
    const { server, store } = await createServerFixture()
    const client = inProcessClient(server.objects, SYSTEM_USER)
    const closing = new AbortController()
    const initialVersion = String(store.revision)
    const events = client
      .watch(configMapKind, { resourceVersion: initialVersion, signal: closing.signal })
      [Symbol.asyncIterator]()
    const firstResult = events.next()
    const maps = Array.from({ length: WATCH_BACKLOG_EVENTS_MAX + 2 * COMMIT_WRITES_MAX }, (_, index) =>
      aConfigMap(`m-${index}`),
    )
    for (let start = 0; start < maps.length; start += COMMIT_WRITES_MAX) {
      const batch = maps.slice(start, start + COMMIT_WRITES_MAX)
      await Promise.all(batch.map((object) => client.create(configMapKind, object)))
    }
    const names: string[] = []
    let version = initialVersion
    for (let result = await firstResult; !result.done; result = await events.next()) {
      if (result.value.type === 'bookmark') continue
      names.push(result.value.object.metadata.name!)
      version = result.value.object.metadata.resourceVersion!
    }
    expect(names.length).toBeGreaterThanOrEqual(WATCH_BACKLOG_EVENTS_MAX)
    expect(names.length).toBeLessThan(maps.length)
    for await (const event of client.watch(configMapKind, { resourceVersion: version, signal: closing.signal })) {
      if (event.type !== 'bookmark') names.push(event.object.metadata.name!)
      if (names.length === maps.length) break
    }
    expect(names).toEqual(maps.map(({ metadata }) => metadata.name))
  })

  it('SYS-10 rejects subresources that a kind lacks and review kinds, also in a commit', async () => {
    const { client, api } = await open()
    const object = await client.create(configMapKind, aConfigMap('a'))
    const { revision } = api.store
    const patch = { type: 'merge', body: { data: { k: 'w' } } } as const
    const review = { metadata: { name: 'r' }, spec: {} } as Json
    const attempts = [
      [client.update(configMapKind, object, { subresource: 'status' }), 404],
      [client.commit([{ do: 'update', kind: configMapKind, object, subresource: 'status' }]), 404],
      [client.commit([{ do: 'patch', kind: configMapKind, ref: object.metadata, patch, subresource: 'scale' }]), 404],
      [client.create(REVIEW_KIND, review), 405],
      [client.commit([{ do: 'create', kind: REVIEW_KIND, object: review }]), 405],
    ] as const
    for (const [attempt, code] of attempts) await expect(attempt).rejects.toMatchObject({ code })
    expect(api.store.revision).toBe(revision)
  })

  it('fails with 503 after the store is closed', async () => {
    const { client, api } = await open()
    await api.store.close()
    const error = await client.create(configMapKind, aConfigMap('a')).catch((reason) => reason)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ code: 503, reason: 'ServiceUnavailable' })
  })
})
