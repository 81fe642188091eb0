import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PROTOBUF_MEDIA } from '../api/protobuf/envelope.ts'
import { silentLog } from '../base/log.ts'
import { publishKubernetesService, type ServerEndpoint } from './kubernetes-service.ts'
import { createServerFixture, type Json, type ServerFixture } from './server.fixture.ts'

const CORE = '/api/v1/namespaces/default'
const SLICE = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes'

let server: ServerFixture
beforeEach(async () => {
  server = await createServerFixture()
})
afterEach(() => server.store.close())

const publish = (endpoint: ServerEndpoint, isStoreShared = false) =>
  publishKubernetesService({ ...server, random: Math.random, log: silentLog, endpoint, isStoreShared })
const read = async (url: string): Promise<Json> => (await server.get(url)).json
const sliceAddresses = async (): Promise<string[]> =>
  (await read(SLICE)).endpoints.flatMap(({ addresses }: Json) => addresses)

describe('the Service kubernetes', () => {
  it('SYS-23 has the address of the server in Service, Endpoints and EndpointSlice', async () => {
    await publish({ address: '10.0.0.1', port: 7443 })
    expect((await read(`${CORE}/services/kubernetes`)).spec).toMatchObject({
      clusterIP: 'None',
      ports: [{ name: 'https', port: 7443, targetPort: 7443 }],
    })
    expect((await read(`${CORE}/endpoints/kubernetes`)).subsets).toEqual([
      { addresses: [{ ip: '10.0.0.1' }], ports: [{ name: 'https', port: 7443, protocol: 'TCP' }] },
    ])
    expect(await read(SLICE)).toMatchObject({
      metadata: { labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
      ports: [{ name: 'https', port: 7443 }],
    })
  })

  it('keeps its uid and follows the listen address of the next start', async () => {
    await publish({ address: '10.0.0.1', port: 7443 })
    const { uid } = (await read(SLICE)).metadata
    const { revision } = server.store
    await publish({ address: '10.0.0.1', port: 7443 })
    expect(server.store.revision).toBe(revision)
    await publish({ address: 'fd00::1', port: 7444 })
    const slice = await read(SLICE)
    expect([slice.metadata.uid, slice.addressType, slice.ports[0].port]).toEqual([uid, 'IPv6', 7444])
  })

  it('SYS-23 has the addresses of all servers that share a store, until they stop or crash', async () => {
    const first = await publish({ address: '10.0.0.1', port: 7443 }, true)
    await publish({ address: '10.0.0.2', port: 7443 }, true)
    expect(await sliceAddresses()).toEqual(['10.0.0.1', '10.0.0.2'])
    await server.clock.advance(100_000)
    expect(await sliceAddresses()).toEqual(['10.0.0.1', '10.0.0.2'])
    await first.stop()
    expect(await sliceAddresses()).toEqual(['10.0.0.2'])

    await server.store.transact(() => [
      {
        put: 'stowage.dev/servers/10.0.0.3:7443',
        value: Buffer.from('{"metadata":{}}'),
        expiresAtMs: server.clock.nowMs() + 60_000,
      },
    ])
    await server.clock.advance(20_000)
    await server.waitUntil(async () => (await sliceAddresses()).includes('10.0.0.3'), 'the endpoint of a third server')
    await server.clock.advance(100_000)
    await server.waitUntil(
      async () => !(await sliceAddresses()).includes('10.0.0.3'),
      'the removal of the endpoint of the third server',
    )
  })

  it('can be read as protobuf, and cannot be deleted by clients', async () => {
    await publish({ address: '10.0.0.1', port: 7443 })
    for (const url of [`${CORE}/services/kubernetes`, `${CORE}/endpoints/kubernetes`, SLICE]) {
      const { status, bytes } = await server.get(url, { accept: PROTOBUF_MEDIA })
      expect(status).toBe(200)
      if (!url.includes('services')) expect(Buffer.from(bytes).toString('latin1')).toContain('10.0.0.1')
      expect((await server.delete(url)).status).toBe(405)
    }
  })
})
