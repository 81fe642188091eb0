import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import type { ControllerDeps } from '../../runtime/controller-deps.ts'
import { type CacheSet, createCacheSet } from '../../runtime/index.ts'
import { createDefaultAccountController, createRootCaController } from './index.ts'

const SHOP = '/api/v1/namespaces/shop'
const ACCOUNT = `${SHOP}/serviceaccounts/default`
const ROOT_CA = `${SHOP}/configmaps/kube-root-ca.crt`

let server: ServerFixture
let stop: () => Promise<void>
beforeEach(async () => {
  server = await createServerFixture()
  const { clock } = server
  const abort = new AbortController()
  const cacheSets: CacheSet[] = []
  const depsWith = (client: Client): ControllerDeps => {
    const sharedOptions = { client, clock, random: () => 0.5, log: silentLog }
    const caches = createCacheSet(sharedOptions)
    cacheSets.push(caches)
    return { ...sharedOptions, caches }
  }
  const runs = [
    createDefaultAccountController(depsWith(server.clientOf('service-accounts'))),
    createRootCaController({ ...depsWith(server.clientOf('root-ca')), rootCa: 'PEM' }),
  ].map((controller) => controller.run(abort.signal))
  stop = async () => {
    abort.abort()
    await Promise.all(runs)
    for (const caches of cacheSets) await caches.stop()
    await server.store.close()
  }
})
afterEach(() => stop())

const waitFor = (url: string, isExpected = (_object: any) => true) =>
  server.waitUntil(async () => {
    const { status, json } = await server.get(url)
    return status === 200 && isExpected(json)
  }, url)

describe('the service account controllers', () => {
  it('SYS-23 create the account default and the ConfigMap kube-root-ca.crt in existing and new namespaces', async () => {
    await waitFor('/api/v1/namespaces/kube-system/serviceaccounts/default')
    await waitFor('/api/v1/namespaces/default/configmaps/kube-root-ca.crt')
    await server.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await waitFor(ACCOUNT)
    await waitFor(ROOT_CA, ({ data }) => data['ca.crt'] === 'PEM')
  })

  it('SYS-23 recreate deleted objects and restore a changed CA', async () => {
    await server.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await waitFor(ACCOUNT)
    const { uid } = (await server.get(ACCOUNT)).json.metadata
    await server.delete(ACCOUNT)
    await waitFor(ACCOUNT, ({ metadata }) => metadata.uid !== uid)
    await waitFor(ROOT_CA)
    await server.delete(ROOT_CA)
    await waitFor(ROOT_CA)
    await server.patch(ROOT_CA, { data: { 'ca.crt': 'other', more: 'x' } }, 'merge')
    await waitFor(ROOT_CA, ({ data }) => data['ca.crt'] === 'PEM' && data.more === undefined)
  })

  it('create nothing in a namespace that is being deleted', async () => {
    await server.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
    await waitFor(ACCOUNT)
    await waitFor(ROOT_CA)
    await server.delete(SHOP)
    await server.delete(ACCOUNT)
    await server.delete(ROOT_CA)
    await server.post('/api/v1/namespaces', { metadata: { name: 'later' } })
    await waitFor('/api/v1/namespaces/later/serviceaccounts/default')
    await waitFor('/api/v1/namespaces/later/configmaps/kube-root-ca.crt')
    expect((await server.get(ACCOUNT)).status).toBe(404)
    expect((await server.get(ROOT_CA)).status).toBe(404)
  })
})
