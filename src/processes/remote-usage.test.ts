// Tests the usage that a process separate from the API server reads, with the rules of auto-growing for each request.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { storageClassKind } from '../api/kinds/storage-class/storage-class.ts'
import { componentAuthorizer } from '../apiserver/rbac/component-access.fixture.ts'
import { createServerFixture, type ServerFixture } from '../apiserver/server.fixture.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { Transport } from '../client/http/transport.ts'
import { createCacheSet } from '../runtime/index.ts'
import { createRemoteUsageReader } from './remote-usage.ts'

const USED = { usedBytes: 80, freeBytes: 20 }
const AUTO_GROW = { 'stowage.dev/auto-grow': 'max=10Gi' }

let server: ServerFixture
let caches: ReturnType<typeof createCacheSet>
const abort = new AbortController()
beforeEach(async () => {
  server = await createServerFixture()
  caches = createCacheSet({ client: server.clientOf('auto-growing'), clock: server.clock, random: () => 0.5 })
})
afterEach(async () => {
  await caches.stop()
  await server.store.close()
})

/** Responds to each path with a status and a text, and authorizes the request with the rules of auto-growing. */
function transportOf(responses: Readonly<Record<string, { status: number; text: string }>>) {
  const authorizer = componentAuthorizer('auto-growing')
  const user = { name: 'auto-growing', groups: [] }
  const paths: string[] = []
  const transport: Pick<Transport, 'call'> = {
    async call({ path }) {
      paths.push(path)
      const node = /^\/api\/v1\/nodes\/([^/]+)\/proxy\//.exec(path)?.[1]
      const attributes = node
        ? { user, verb: 'get', group: '', resource: 'nodes', subresource: 'proxy', name: node, namespace: '' }
        : { user, verb: 'get', path }
      expect(authorizer.authorize(attributes as never).allowed).toBe(true)
      return { headers: {}, ...(responses[path] ?? { status: 404, text: 'not found' }) } as never
    },
  }
  return { paths, transport }
}

function readerOf(transport: Pick<Transport, 'call'>, { isStowage }: { isStowage: boolean }, log: Logger = silentLog) {
  const read = createRemoteUsageReader({ transport, clock: server.clock, log, signal: abort.signal })
  return () => read({ client: { serves: async () => isStowage }, caches })
}

async function createPod(name: string, node: string | undefined, claim: string): Promise<void> {
  await server.client().create(podKind, {
    metadata: { namespace: 'default', name },
    spec: {
      ...(node ? { nodeName: node } : {}),
      containers: [{ name: 'main', image: 'any' }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
    },
  } as never)
}

const createClaim = (name: string, annotations: Readonly<Record<string, string>>, storageClassName = 'plain') =>
  server.client().create(persistentVolumeClaimKind, {
    metadata: { namespace: 'default', name, annotations },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
  } as never)

const waitUntilSynced = async () => {
  await server.clientOf('auto-growing').list(podKind) // as the cache does on an API server without streaming lists
  for (const kind of [podKind, persistentVolumeClaimKind, storageClassKind])
    await server.advanceUntilSettled(caches.of(kind as typeof podKind).whenSynced(abort.signal))
}

describe('the usage that `stowage controllers` reads', () => {
  it('comes from the metrics of a Stowage server, at most every 30 seconds', async () => {
    const labels = '{namespace="default",persistentvolumeclaim="data"}'
    const text = `kubelet_volume_stats_used_bytes${labels} 80\nkubelet_volume_stats_available_bytes${labels} 20\n`
    const { transport, paths } = transportOf({ '/metrics': { status: 200, text } })
    const read = readerOf(transport, { isStowage: true })
    expect((await read()).get('default/data')).toEqual(USED)
    await read()
    expect(paths).toEqual(['/metrics'])
    await server.clock.advance(30_000)
    await read()
    expect(paths).toHaveLength(2)
  })

  it('comes from the kubelets of nodes whose pods use growing claims on other servers', async () => {
    await server.client().create(storageClassKind, {
      metadata: { name: 'growing', annotations: AUTO_GROW },
      provisioner: 'disks.example.com',
    })
    await createClaim('own', AUTO_GROW)
    await createClaim('inherited', {}, 'growing')
    await createClaim('fixed', {})
    await createPod('a', 'n1', 'own')
    await createPod('b', 'n2', 'inherited')
    await createPod('c', 'n3', 'fixed')
    await createPod('d', undefined, 'own')
    const volume = (name: string) => ({ usedBytes: 80, availableBytes: 20, pvcRef: { namespace: 'default', name } })
    const summary = (name: string) => ({ status: 200, text: JSON.stringify({ pods: [{ volume: [volume(name)] }] }) })
    const { transport, paths } = transportOf({
      '/api/v1/nodes/n1/proxy/stats/summary': summary('own'),
      '/api/v1/nodes/n2/proxy/stats/summary': summary('inherited'),
    })
    const read = readerOf(transport, { isStowage: false })
    await read() // starts the caches
    await waitUntilSynced()
    await server.clock.advance(30_000)
    const usage = await read()
    expect(paths.sort()).toEqual(['n1', 'n2'].map((name) => `/api/v1/nodes/${name}/proxy/stats/summary`))
    expect([...usage]).toEqual([
      ['default/own', USED],
      ['default/inherited', USED],
    ])
  })

  it('is unknown if a request is denied, which is logged once', async () => {
    const reasons: string[] = []
    const log = {
      ...silentLog,
      warn: ({ reason }: { reason: string }) => void reasons.push(reason),
    } as unknown as Logger
    const { transport } = transportOf({ '/metrics': { status: 403, text: 'forbidden' } })
    const read = readerOf(transport, { isStowage: true }, log)
    expect((await read()).size).toBe(0)
    await server.clock.advance(30_000)
    expect((await read()).size).toBe(0)
    expect(reasons).toEqual(['the process needs permission to get the path /metrics'])
  })
})
