import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { inProcessClient, SYSTEM_USER } from '../../apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createNamespaceController } from './namespace-controller.ts'

const SHOP = '/api/v1/namespaces/shop'

let trial: ServerFixture
let stop: () => Promise<void>

function startController(): () => Promise<void> {
  const abort = new AbortController()
  const client = inProcessClient(trial.server.objects, SYSTEM_USER)
  const { clock } = trial
  const controller = createNamespaceController({ client, kinds: ALL_KINDS, clock, random: () => 0.5, log: silentLog })
  const running = controller.run(abort.signal)
  return () => {
    abort.abort()
    return running
  }
}

beforeEach(async () => {
  trial = await createServerFixture()
  stop = startController()
  await trial.post('/api/v1/namespaces', { metadata: { name: 'shop' } })
})
afterEach(async () => {
  await stop()
  await trial.store.close()
})

/** Until the namespace, as the API shows it, is as wanted; undefined once it is gone. */
async function until(wanted: (namespace: any) => boolean): Promise<any> {
  for (let turn = 0; turn < 1_000; turn++) {
    const { status, json } = await trial.get(SHOP)
    const namespace = status === 404 ? undefined : json
    if (wanted(namespace)) return namespace
    await new Promise((resolve) => setImmediate(resolve))
  }
  throw new Error(`the namespace stayed ${(await trial.get(SHOP)).text}`)
}
const isGone = (namespace: any) => namespace === undefined
const remaining = (namespace: any) =>
  namespace?.status.conditions?.find(({ type }: any) => type === 'NamespaceContentRemaining')

describe('a namespace that is deleted', () => {
  it('SYS-4 goes at once when it is empty', async () => {
    const { json } = await trial.delete(SHOP)
    expect(json).toMatchObject({
      metadata: { deletionTimestamp: expect.any(String) },
      status: { phase: 'Terminating' },
    })
    await until(isGone)
  })

  it('SYS-4 takes everything in it along, of every kind, and nothing else', async () => {
    await trial.post(`${SHOP}/configmaps`, { metadata: { name: 'a' } })
    await trial.post(`${SHOP}/secrets`, { metadata: { name: 'a' } })
    await trial.post('/apis/coordination.k8s.io/v1/namespaces/shop/leases', { metadata: { name: 'a' }, spec: {} })
    await trial.post('/apis/storage.k8s.io/v1/namespaces/shop/csistoragecapacities', {
      metadata: { name: 'a' },
      storageClassName: 'c',
    })
    await trial.post('/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' } })
    await trial.delete(SHOP)
    await until(isGone)
    for (const url of [`${SHOP}/configmaps`, `${SHOP}/secrets`, '/apis/coordination.k8s.io/v1/leases']) {
      expect((await trial.get(url)).json.items).toEqual([])
    }
    expect((await trial.get('/api/v1/namespaces/default/configmaps/a')).status).toBe(200)
  })

  it('SYS-4 waits for finalizers, says for which, and goes with the last of them', async () => {
    await trial.post(`${SHOP}/configmaps`, { metadata: { name: 'held', finalizers: ['example.com/hold'] } })
    await trial.post(`${SHOP}/configmaps`, { metadata: { name: 'free' } })
    await trial.delete(SHOP)
    const waiting = await until(remaining)
    expect(waiting.status.phase).toBe('Terminating')
    expect(remaining(waiting)).toMatchObject({
      status: 'True',
      reason: 'SomeResourcesRemain',
      message: '1 object(s) left: configmaps/held (waits for example.com/hold)',
    })
    expect((await trial.get(`${SHOP}/configmaps/held`)).json.metadata.deletionTimestamp).toBeTruthy()
    expect((await trial.get(`${SHOP}/configmaps/free`)).status).toBe(404)
    await trial.patch(`${SHOP}/configmaps/held`, { metadata: { finalizers: null } }, 'merge')
    await until(isGone)
  })

  it('SYS-4 while nobody looked is found at the next start', async () => {
    await stop()
    await trial.post(`${SHOP}/configmaps`, { metadata: { name: 'a' } })
    await trial.delete(SHOP)
    expect((await trial.get(SHOP)).json.status.phase).toBe('Terminating')
    stop = startController()
    await until(isGone)
  })

  it('can be made anew afterwards', async () => {
    await trial.delete(SHOP)
    await until(isGone)
    expect((await trial.post('/api/v1/namespaces', { metadata: { name: 'shop' } })).status).toBe(201)
    expect((await trial.post(`${SHOP}/configmaps`, { metadata: { name: 'a' } })).status).toBe(201)
  })
})
