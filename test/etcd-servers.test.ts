// Tests two servers on one etcd, and the responses of a server while etcd is unavailable.
import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { etcdSkipReason, type RunningEtcd, startEtcd } from './helpers/etcd.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { type ReceivedResponse, type RunningServer, type ServerOptions, startServer } from './helpers/server.ts'

const MAPS = '/api/v1/namespaces/default/configmaps'
const configMap = (name: string, n: number) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { n: String(n) },
})

const skipMessage = etcdSkipReason()

describe.skipIf(skipMessage)(`servers on etcd${skipMessage ? ` (skipped: ${skipMessage})` : ''}`, () => {
  let dir: string
  let etcd: RunningEtcd
  let leftovers: HostLeftovers
  const servers: RunningServer[] = []
  beforeEach(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-etcd-servers-')))
    leftovers = await findLeftoversBelow(dir)
    etcd = await startEtcd()
  })
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.kill()))
    await etcd.remove()
    await leftovers.remove()
    await rm(dir, { recursive: true, force: true })
  })

  async function start(name: string, options: Partial<ServerOptions> = {}): Promise<RunningServer> {
    const pkiDir = join(dir, 'pki')
    const flags = ['--store', `etcd://${etcd.endpoints.join(',')}/test`, '--pki-dir', pkiDir, ...(options.flags ?? [])]
    const server = await startServer({ command: 'server', ...options, dataDir: join(dir, name), pkiDir, flags })
    servers.push(server)
    return server
  }

  it("SYS-8 return each other's writes immediately, reject stale updates, and keep all objects after a kill", async () => {
    const a = await start('a')
    const b = await start('b')
    const createResponse = await a.call('POST', MAPS, configMap('m', 0))
    expect(createResponse.status).toBe(201)
    let lastResponse: ReceivedResponse = createResponse
    for (let n = 1; n <= 20; n++) {
      const [writer, reader] = n % 2 ? [b, a] : [a, b]
      const { resourceVersion } = lastResponse.json.metadata
      const update = { ...configMap('m', n), metadata: { name: 'm', resourceVersion } }
      lastResponse = await writer.call('PUT', `${MAPS}/m`, update)
      expect(lastResponse.status).toBe(200)
      expect((await reader.call('GET', `${MAPS}/m`)).json.data).toEqual({ n: String(n) })
      expect((await reader.call('PUT', `${MAPS}/m`, update)).status).toBe(409)
    }
    await a.kill()
    expect((await b.call('GET', `${MAPS}/m`)).json).toEqual(lastResponse.json)
    const restartedServer = await start('a')
    expect((await restartedServer.call('GET', `${MAPS}/m`)).json).toEqual(lastResponse.json)
  })

  it("PLUS-15 list each other's operations", async () => {
    const a = await start('a')
    const b = await start('b')
    const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'orders' }
    const fields = { component: 'provisioner', process: 'p', operation: 'Provision', phase: 'Waiting' }
    const operation = { metadata: { namespace: 'shop', name: 'orders.0123456789' }, object, ...fields }
    const report = (server: RunningServer, operations: readonly object[]) =>
      server.call('POST', '/apis/stowage.dev/v1/operationreports', {
        spec: { process: 'p', isComplete: true, operations },
      })
    const listOperations = async (server: RunningServer) =>
      (await server.call('GET', '/apis/stowage.dev/v1/namespaces/shop/operations')).json.items
    expect((await report(a, [operation])).status).toBe(201)
    const labels = { 'stowage.dev/server': new URL(a.url).host.replace(':', '-') }
    await vi.waitFor(
      async () => expect(await listOperations(b)).toMatchObject([{ object, metadata: { labels } }]),
      20_000,
    )
    expect(await listOperations(a)).toMatchObject([{ object }])
    await report(a, [])
    await vi.waitFor(async () => expect(await listOperations(b)).toEqual([]), 20_000)
  })

  it('SYS-8 accept the same credentials if they copy them, and issue their own certificates', async () => {
    const a = await start('a')
    const flags = ['--store', `etcd://${etcd.endpoints.join(',')}/test`, '--pki-source', join(dir, 'pki')]
    const dataDir = join(dir, 'b')
    const b = await startServer({
      dataDir,
      command: 'server',
      flags: [...flags, '--tls-san', 'balancer.example, 192.0.2.7'],
    })
    servers.push(b)
    expect([b.token, b.ca]).toEqual([a.token, a.ca])
    const account = '/api/v1/namespaces/default/serviceaccounts/default'
    await a.call('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } })
    const { token } = (await a.call('POST', `${account}/token`, { spec: {} })).json.status
    const review = { spec: { token } }
    expect((await b.call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', review)).json.status).toMatchObject({
      authenticated: true,
      user: { username: 'system:serviceaccount:default:default' },
    })
    const certificate = new X509Certificate(await readFile(join(dataDir, 'pki', 'serving.crt')))
    expect(certificate.checkHost('balancer.example')).toBe('balancer.example')
    expect(certificate.checkIP('192.0.2.7')).toBe('192.0.2.7')
  })

  it('create a default class, and with `up` a node that is named after the host and runs a pod with a claim', async () => {
    const server = await start('a')
    const classes = (await server.call('GET', '/apis/storage.k8s.io/v1/storageclasses')).json.items
    expect(classes).toMatchObject([
      { metadata: { name: 'local', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } },
    ])
    const up = await start('b', { command: 'up', nodes: 'default', flags: ['--pool-size', '1Gi'] })
    expect(up.nodes?.names).toEqual([expect.stringMatching(/-[0-9a-f]{4}-1$/)])
    const pod = {
      metadata: { name: 'p' },
      spec: {
        containers: [{ name: 'c', image: 'none' }],
        volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }],
      },
    }
    const claim = {
      metadata: { name: 'c' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '320Mi' } } },
    }
    const namespacePath = '/api/v1/namespaces/default'
    expect((await server.call('POST', `${namespacePath}/persistentvolumeclaims`, claim)).status).toBe(201)
    expect((await server.call('POST', `${namespacePath}/pods`, pod)).status).toBe(201)
    const getPhase = async () => (await server.call('GET', `${namespacePath}/pods/p`)).json.status?.phase
    while ((await getPhase()) !== 'Running') await new Promise((resolve) => setTimeout(resolve, 50)) // until the test times out
    expect((await server.call('DELETE', `${namespacePath}/pods/p`)).status).toBe(200)
    const isGone = async (path: string) => (await server.call('GET', path)).status === 404
    while (!(await isGone(`${namespacePath}/pods/p`))) await new Promise((resolve) => setTimeout(resolve, 50))
    await server.call('DELETE', `${namespacePath}/persistentvolumeclaims/c`)
    while ((await server.call('GET', '/api/v1/persistentvolumes')).json.items.length > 0)
      await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await up.stop()).toBe(0)
  })

  it('SYS-8 keep a quota exact while clients exhaust it through both servers and one server is killed', async () => {
    const [a, b] = [await start('a'), await start('b')]
    const claims = '/api/v1/namespaces/default/persistentvolumeclaims'
    const hard = { persistentvolumeclaims: '60', 'requests.storage': '60Gi' }
    await a.call('POST', '/api/v1/namespaces/default/resourcequotas', { metadata: { name: 'q' }, spec: { hard } })
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    const acknowledgedNames = new Set<string>()
    let serverKill: Promise<void> | undefined
    const create = async (server: RunningServer, name: string) => {
      const response = await server.call('POST', claims, { metadata: { name }, spec }).catch(() => undefined)
      if (response?.status === 201) acknowledgedNames.add(name)
      if (acknowledgedNames.size === 20) serverKill ??= b.kill()
    }
    await Promise.all(Array.from({ length: 64 }, (_, index) => create(index % 2 ? a : b, `first-${index}`)))
    await serverKill
    await Promise.all(Array.from({ length: 64 }, (_, index) => create(a, `second-${index}`)))
    const names = (await a.call('GET', claims)).json.items.map(({ metadata }: any) => metadata.name)
    expect(names).toHaveLength(60)
    expect([...acknowledgedNames].filter((name) => !names.includes(name))).toEqual([])
    const { used } = (await a.call('GET', '/api/v1/namespaces/default/resourcequotas/q')).json.status
    expect(used).toEqual(hard)
  })

  it('SYS-11 are live but not ready while etcd does not respond, and become ready when it does', async () => {
    const server = await start('a')
    const waitForReadyStatus = async (status: number) => {
      for (;;) {
        const response = await server.call('GET', '/readyz')
        if (response.status === status) return response.text
        await new Promise((resolve) => setTimeout(resolve, 50)) // polls until the test times out
      }
    }
    expect(await waitForReadyStatus(200)).toBe('ok')
    etcd.members[0]?.signal('SIGSTOP')
    try {
      expect(await waitForReadyStatus(503)).toContain(
        '\n[-]etcd failed: not responding\n[+]store-records ok\nreadyz check failed\n',
      )
      expect((await server.call('GET', '/livez')).text).toBe('ok')
      expect((await server.call('GET', '/readyz?exclude=etcd')).text).toBe('ok')
    } finally {
      etcd.members[0]?.signal('SIGCONT')
    }
    expect(await waitForReadyStatus(200)).toBe('ok')
  })

  it('return 503 with Retry-After while etcd is unavailable, and recover', async () => {
    const server = await start('a')
    await server.call('POST', MAPS, configMap('m', 0))
    await etcd.members[0]?.kill()
    for (const response of await Promise.all([
      server.call('GET', `${MAPS}/m`),
      server.call('POST', MAPS, configMap('n', 0)),
    ])) {
      expect(response.status).toBe(503)
      expect(response.headers['retry-after']).toBe('1')
      expect(response.json).toMatchObject({ kind: 'Status', reason: 'ServiceUnavailable' })
      expect(response.json.message).toContain('the store is unavailable')
    }
    await etcd.members[0]?.start()
    const getStatus = async () => (await server.call('GET', `${MAPS}/m`)).status
    while ((await getStatus()) === 503) await new Promise((resolve) => setTimeout(resolve, 100))
    expect(await getStatus()).toBe(200)
    expect((await server.call('POST', MAPS, configMap('o', 0))).status).toBe(201)
  })
})
