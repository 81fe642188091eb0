// Runs controllers over HTTP against a server process that runs none.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../src/api/kinds/index.ts'
import { systemClock, systemRandom } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { type HttpClient, httpClient, kubeconfigConnection } from '../src/client/index.ts'
import { createGarbageController } from '../src/controllers/garbage-collection/index.ts'
import { createNamespaceController } from '../src/controllers/namespaces/index.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

describe('controllers against a remote server', () => {
  const stop = new AbortController()
  let dataDir: string
  let server: RunningServer
  let client: HttpClient
  let controllersRun: Promise<unknown>

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'stowage-remote-'))
    server = await startServer({ dataDir, command: 'server' })
    const clock = systemClock()
    client = httpClient({ connection: await kubeconfigConnection({ path: server.kubeconfig, clock }), clock })
    const deps = { client, kinds: ALL_KINDS, clock, random: systemRandom(), log: silentLog }
    const controllers = [createNamespaceController(deps), createGarbageController(deps)]
    controllersRun = Promise.all(controllers.map((controller) => controller.run(stop.signal)))
  })
  afterAll(async () => {
    stop.abort()
    await controllersRun
    client.close()
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  })

  async function waitUntilDeleted(path: string): Promise<void> {
    for (;;) {
      const { status } = await server.call('GET', path)
      if (status === 404) return
      await new Promise((resolve) => setTimeout(resolve, 20)) // polls until the test times out
    }
  }

  it('SYS-5 delete the content of a terminating namespace', async () => {
    await server.call('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
    await server.call('POST', '/api/v1/namespaces/shop/configmaps', { metadata: { name: 'a' } })
    await server.call('DELETE', '/api/v1/namespaces/shop')
    await waitUntilDeleted('/api/v1/namespaces/shop')
    expect((await server.call('GET', '/api/v1/namespaces/shop/configmaps/a')).status).toBe(404)
  })

  it('SYS-5 delete the dependents of a deleted owner', async () => {
    const { json } = await server.call('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'owner' } })
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: json.metadata.uid }]
    await server.call('POST', '/api/v1/namespaces/default/secrets', { metadata: { name: 'child', ownerReferences } })
    await server.call('DELETE', '/api/v1/namespaces/default/configmaps/owner')
    await waitUntilDeleted('/api/v1/namespaces/default/secrets/child')
  })
})
