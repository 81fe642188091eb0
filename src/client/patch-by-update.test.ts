import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { isConflict } from '../api/status-error.ts'
import { createServerFixture, type ServerFixture } from '../apiserver/server.fixture.ts'
import type { Client } from './client.ts'
import { patchByUpdate } from './patch-by-update.ts'
import { asStock, type StockRequest } from './stock-server.fixture.ts'

const ref = { namespace: 'default', name: 'settings' }
const set = (value: string, metadata = {}) => ({ type: 'merge' as const, body: { metadata, data: { value } } })

describe('a client that may update but not patch', () => {
  let server: ServerFixture
  let client: Client
  let verbs: string[]
  let denied: readonly string[]
  beforeEach(async () => {
    server = await createServerFixture()
    verbs = []
    denied = ['patch']
    await server.client().create(configMapKind, { metadata: ref, data: { kept: 'yes' } })
    const stock = asStock(server.client(), {
      allows: ({ verb }: StockRequest) => !denied.includes(verb),
      onRequest: ({ verb }) => void verbs.push(verb),
    })
    client = patchByUpdate(stock)
  })
  afterEach(() => server.store.close())

  it('SYS-29 reads and updates instead, and does not try to patch again', async () => {
    const patched = await client.patch(configMapKind, ref, set('1'))
    expect(patched.data).toEqual({ kept: 'yes', value: '1' })
    await client.patch(configMapKind, ref, { type: 'json', body: [{ op: 'remove', path: '/data/kept' }] })
    await client.patch(configMapKind, ref, {
      type: 'strategic',
      body: { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] }, data: { more: '2' } },
    })
    expect((await client.get(configMapKind, ref)).data).toEqual({ value: '1', more: '2' })
    expect(verbs).toEqual(['patch', 'get', 'update', 'get', 'update', 'get', 'update', 'get'])
  })

  it('SYS-29 does so in a commit', async () => {
    await client.commit([{ do: 'patch', kind: configMapKind, ref, patch: set('1') }])
    expect((await client.get(configMapKind, ref)).data).toEqual({ kept: 'yes', value: '1' })
  })

  it('fails with a conflict if the version in the patch is outdated', async () => {
    const { resourceVersion } = (await client.get(configMapKind, ref)).metadata
    await server.client().patch(configMapKind, ref, set('other'))
    const error = await client.patch(configMapKind, ref, set('1', { resourceVersion })).catch((failure) => failure)
    expect(isConflict(error)).toBe(true)
    expect((await client.get(configMapKind, ref)).data?.value).toBe('other')
  })

  it('repeats the update if another client changed the object meanwhile', async () => {
    const direct = server.client()
    let changes = 0
    const racing = patchByUpdate({
      ...asStock(direct, { allows: ({ verb }) => verb !== 'patch' }),
      async update(kind, object, options) {
        if (changes++ === 0) await direct.patch(configMapKind, ref, { type: 'merge', body: { data: { other: '1' } } })
        return direct.update(kind, object, options)
      },
    })
    const patched = await racing.patch(configMapKind, ref, set('1'))
    expect(patched.data).toEqual({ kept: 'yes', other: '1', value: '1' })
  })

  it('fails with the denial of the patch if it may not update either', async () => {
    denied = ['patch', 'update']
    await expect(client.patch(configMapKind, ref, set('1'))).rejects.toThrow(/cannot patch resource "configmaps"/)
  })

  it('patches again when the role grants patch instead of update', async () => {
    await client.patch(configMapKind, ref, set('1'))
    denied = ['update']
    expect((await client.patch(configMapKind, ref, set('2'))).data?.value).toBe('2')
  })
})
