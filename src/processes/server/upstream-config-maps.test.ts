import { X509Certificate } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { inProcessClient } from '../../apiserver/index.ts'
import { createServerFixture } from '../../apiserver/server.fixture.ts'
import { writeUpstreamConfigMaps } from './upstream-config-maps.ts'

const CONFIG_MAPS = '/api/v1/namespaces/kube-system/configmaps'
const AUTHENTICATION = `${CONFIG_MAPS}/extension-apiserver-authentication`
const TOKEN_TRACKING = `${CONFIG_MAPS}/kube-apiserver-legacy-service-account-token-tracking`
const YEAR_MS = 365 * 24 * 60 * 60 * 1_000

async function createFixture() {
  const server = await createServerFixture()
  const client = inProcessClient(server.server.objects, { name: 'tester', groups: ['system:masters'] })
  const write = (caCert: string) => writeUpstreamConfigMaps({ client, caCert, clock: server.clock })
  const readData = async (path: string) => (await server.get(path)).json.data
  return { ...server, write, readData }
}

describe('writeUpstreamConfigMaps', () => {
  it('creates the ConfigMap that delegated authentication reads, and updates it only if the CA has changed', async () => {
    const { store, write, readData } = await createFixture()
    await write('first CA')
    const firstData = await readData(AUTHENTICATION)
    expect(firstData['client-ca-file']).toBe('first CA')
    await write('second CA')
    expect(await readData(AUTHENTICATION)).toEqual({ ...firstData, 'client-ca-file': 'second CA' })
    const { revision } = store
    await write('second CA')
    expect(store.revision).toBe(revision)
  })

  it('publishes a CA for authenticating proxies and the names of their headers', async () => {
    const { write, readData } = await createFixture()
    await write('CA')
    const { 'client-ca-file': _, 'requestheader-client-ca-file': proxyCa, ...headers } = await readData(AUTHENTICATION)
    expect(new X509Certificate(proxyCa)).toMatchObject({ ca: true, subject: 'CN=stowage-front-proxy-ca' })
    for (const value of Object.values<string>(headers)) expect(JSON.parse(value)).toEqual([expect.any(String)])
    expect(Object.keys(headers)).toEqual([
      'requestheader-allowed-names',
      'requestheader-extra-headers-prefix',
      'requestheader-group-headers',
      'requestheader-uid-headers',
      'requestheader-username-headers',
    ])
  })

  it('replaces a CA for authenticating proxies that expires within a year or is unreadable', async () => {
    const { clock, patch, write, readData } = await createFixture()
    await write('CA')
    const readProxyCa = async () => (await readData(AUTHENTICATION))['requestheader-client-ca-file']
    const firstCa = await readProxyCa()
    await clock.advance(9.5 * YEAR_MS)
    await write('CA')
    const secondCa = await readProxyCa()
    expect(secondCa).not.toBe(firstCa)
    await patch(AUTHENTICATION, { data: { 'requestheader-client-ca-file': 'unreadable' } }, 'merge')
    await write('CA')
    expect(new X509Certificate(await readProxyCa()).subject).toBe('CN=stowage-front-proxy-ca')
  })

  it('records the date of the first start as the start of legacy token tracking', async () => {
    const { clock, write, readData } = await createFixture()
    const since = new Date(clock.nowMs()).toISOString().slice(0, 10)
    await write('CA')
    expect(await readData(TOKEN_TRACKING)).toEqual({ since })
    await clock.advance(YEAR_MS)
    await write('CA')
    expect(await readData(TOKEN_TRACKING)).toEqual({ since })
  })

  it('resolves if ConfigMaps are disabled', async () => {
    const { server, clock } = await createServerFixture({ runtimeConfig: 'v1/configmaps=false' })
    const client = inProcessClient(server.objects, { name: 'tester', groups: ['system:masters'] })
    await expect(writeUpstreamConfigMaps({ client, caCert: 'CA', clock })).resolves.toBeUndefined()
  })
})
