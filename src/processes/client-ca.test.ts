import { describe, expect, it } from 'vitest'
import { inProcessClient } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import { publishClientCa } from './client-ca.ts'

const PATH = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication'
const USER = { name: 'tester', groups: ['system:masters'] }

describe('publishClientCa', () => {
  it('SYS-29 creates the ConfigMap that delegated authentication reads, and updates the CA at the next start', async () => {
    const { server, store, get } = await createServerFixture()
    const client = inProcessClient(server.objects, USER)
    await publishClientCa(client, 'first CA')
    expect((await get(PATH)).json.data).toEqual({ 'client-ca-file': 'first CA' })
    await publishClientCa(client, 'second CA')
    expect((await get(PATH)).json.data).toEqual({ 'client-ca-file': 'second CA' })
    const { revision } = store
    await publishClientCa(client, 'second CA')
    expect(store.revision).toBe(revision)
  })

  it('does nothing if config maps are disabled', async () => {
    const { server } = await createServerFixture({ runtimeConfig: 'v1/configmaps=false' })
    await expect(publishClientCa(inProcessClient(server.objects, USER), 'CA')).resolves.toBeUndefined()
  })
})
