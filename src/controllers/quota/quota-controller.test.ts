import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { createServerFixture, type ServerFixture } from '../../apiserver/server.fixture.ts'
import type { Logger } from '../../base/log.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { createQuotaController, createQuotaMetrics } from './index.ts'

const QUOTAS = '/api/v1/namespaces/default/resourcequotas'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'

let server: ServerFixture
let registry: Registry
let stop: () => Promise<void>
let queueStates: () => readonly { message?: string }[]
const errors: string[] = []
const log: Logger = { ...silentLog, error: (_fields, message) => void errors.push(message) }

beforeEach(async () => {
  errors.length = 0
  server = await createServerFixture()
  stop = async () => {}
})
afterEach(async () => {
  await stop()
  await server.store.close()
})

function start(wrapClient: (inner: Client) => Client = (inner) => inner): void {
  registry = new Registry()
  const abort = new AbortController()
  const sharedOptions = { clock: server.clock, random: () => 0.5, log, client: wrapClient(server.clientOf('quota')) }
  const caches = createCacheSet(sharedOptions)
  const quotaMetrics = createQuotaMetrics(registry)
  const controller = createQuotaController({
    ...sharedOptions,
    caches,
    kinds: ALL_KINDS,
    quotaMetrics,
    verifyIntervalMs: 5_000,
  })
  const run = controller.run(abort.signal)
  queueStates = () => controller.queue.states()
  stop = () => {
    abort.abort()
    return run.then(() => caches.stop())
  }
}

const waitUntil: ServerFixture['waitUntil'] = (condition, goal) => server.waitUntil(condition, goal)

const createQuota = (name: string, hard: object) => server.post(QUOTAS, { metadata: { name }, spec: { hard } })
const createClaim = async (name: string, storage: string) => {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } }
  expect((await server.post(CLAIMS, { metadata: { name }, spec })).status).toBe(201)
}
const readStatus = async (name: string) => (await server.get(`${QUOTAS}/${name}`)).json.status
const differencesTotal = async () =>
  (await registry.getSingleMetric('stowage_quota_differences_total')?.get())?.values[0]?.value
const verificationsTotal = async () =>
  (await registry.getSingleMetric('stowage_quota_verifications_total')?.get())?.values[0]?.value ?? 0

describe('createQuotaController', () => {
  it('computes the usage of a quota that is created after the objects', async () => {
    await createClaim('a', '1Gi')
    await createClaim('b', '3Gi')
    start()
    const hard = { 'requests.storage': '2Gi', persistentvolumeclaims: '10', 'count/configmaps': '5', pods: '1' }
    await createQuota('team', hard)
    await waitUntil(async () => (await readStatus('team')) !== undefined, 'the usage to be counted')
    expect(await readStatus('team')).toEqual({
      hard,
      used: { 'requests.storage': '4Gi', persistentvolumeclaims: '2', 'count/configmaps': '0', pods: '0' },
    })
  })

  it('computes the usage of keys that are added to a quota', async () => {
    start()
    await createClaim('a', '1Gi')
    await createQuota('team', { persistentvolumeclaims: '10' })
    await waitUntil(async () => (await readStatus('team')) !== undefined, 'the usage to be counted')
    await server.patch(`${QUOTAS}/team`, { spec: { hard: { 'requests.storage': '5Gi' } } }, 'merge')
    await waitUntil(
      async () => (await readStatus('team')).used['requests.storage'] === '1Gi',
      'the usage of the new key to be counted',
    )
    await server.patch(`${QUOTAS}/team`, { spec: { hard: { 'requests.storage': '6Gi' } } }, 'merge')
    expect(await readStatus('team')).toEqual({
      hard: { persistentvolumeclaims: '10', 'requests.storage': '6Gi' },
      used: { persistentvolumeclaims: '1', 'requests.storage': '1Gi' },
    })
  })

  it('recounts if the quota is charged during the count', async () => {
    let reads = 0
    // A claim is created between the read of the quota and the write of its usage.
    start((inner) => ({
      ...inner,
      list: async (kind, request) => {
        const list = await inner.list(kind, request)
        if (kind.plural === 'persistentvolumeclaims' && reads++ === 0) await createClaim('late', '1Gi')
        return list
      },
    }))
    await createQuota('team', { persistentvolumeclaims: '10' })
    await waitUntil(async () => reads > 0 && (await readStatus('team')) !== undefined, 'the usage to be counted')
    expect((await readStatus('team')).used).toEqual({ persistentvolumeclaims: '1' })
    await waitUntil(() => queueStates().length === 0, 'the queue to be empty')
    expect((await readStatus('team')).used).toEqual({ persistentvolumeclaims: '1' })
  })

  it('verifies periodically and finds no difference', async () => {
    start()
    await createQuota('team', { persistentvolumeclaims: '10', 'requests.storage': '10Gi' })
    await createClaim('a', '1Gi')
    await waitUntil(async () => (await verificationsTotal()) >= 2, 'two rounds of verification')
    expect(await differencesTotal()).toBe(0)
    expect(errors).toEqual([])
  })

  it('logs, counts and repairs a wrong usage', async () => {
    start()
    await createClaim('a', '1Gi')
    await createQuota('team', { persistentvolumeclaims: '10', 'requests.storage': '10Gi' })
    await waitUntil(async () => (await readStatus('team')) !== undefined, 'the usage to be counted')
    await server.patch(`${QUOTAS}/team/status`, { status: { used: { persistentvolumeclaims: '7' } } }, 'merge')
    await waitUntil(
      async () => (await readStatus('team')).used.persistentvolumeclaims === '1',
      'the usage to be repaired',
    )
    expect(await differencesTotal()).toBe(1)
    expect(errors).toEqual([
      'Quota "default/team" has a wrong usage (persistentvolumeclaims: recorded 7, counted 1). ' +
        'The usage is being repaired. Unless a user edited its status, please report this as a bug.',
    ])
  })

  it('restores an edited status', async () => {
    start()
    await createClaim('a', '1Gi')
    const hard = { persistentvolumeclaims: '10' }
    await createQuota('team', hard)
    await waitUntil(async () => (await readStatus('team')) !== undefined, 'the usage to be counted')
    await server.patch(`${QUOTAS}/team/status`, { status: { hard: { persistentvolumeclaims: '99' } } }, 'merge')
    await waitUntil(
      async () => (await readStatus('team')).hard.persistentvolumeclaims === '10',
      'status.hard to be restored',
    )
    await server.patch(`${QUOTAS}/team/status`, { status: { hard: { pods: '1' }, used: { pods: '1' } } }, 'merge')
    await waitUntil(async () => (await readStatus('team')).used.pods === undefined, 'status.used to be restored')
    expect(await readStatus('team')).toEqual({ hard, used: { persistentvolumeclaims: '1' } })
    expect(await differencesTotal()).toBe(0)
  })

  it('skips a quota that changes during verification', async () => {
    let reads = 0
    start((inner) => ({
      ...inner,
      list: async (kind, request) => {
        const list = await inner.list(kind, request)
        if (kind.plural === 'persistentvolumeclaims') await createClaim(`c-${reads++}`, '1Gi')
        return list
      },
    }))
    await createClaim('first', '1Gi')
    await createQuota('team', { persistentvolumeclaims: '1000' })
    await waitUntil(() => reads >= 5, 'several rounds of verification')
    expect(await differencesTotal()).toBe(0)
    expect((await readStatus('team')).used.persistentvolumeclaims).toBe(String(reads + 1))
  })

  it('does not change quotas on a server that maintains them itself', async () => {
    start((inner) => ({ ...inner, commitsAtomically: async () => false }))
    await createQuota('team', { persistentvolumeclaims: '10' })
    await waitUntil(
      () => queueStates().some(({ message }) => message?.includes('maintains quotas itself') ?? false),
      'the message to be reported',
    )
    expect(await readStatus('team')).toBeUndefined()
  })
})
