import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { KubeObject } from '../api/kind.ts'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { secretKind } from '../api/kinds/secret/secret.ts'
import { ApiError } from '../api/status-error.ts'
import { createServerFixture, type ServerFixture } from '../apiserver/server.fixture.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/client.ts'
import { asStock, type StockRequest } from '../client/stock-server.fixture.ts'
import { createCacheSet } from './cache-set.ts'
import { createController, source } from './controller.ts'
import { createClientMetrics } from './metrics.ts'
import { serveMonitoring } from './monitoring.ts'
import { done } from './outcome.ts'
import { createRights, type Rights } from './rights.ts'

const dataPatch = (value: string) => ({ type: 'merge' as const, body: { data: { value } } })
const ref = { namespace: 'default', name: 'settings' }

describe('missing permissions', () => {
  let server: ServerFixture
  let client: Client
  let rights: Rights
  let registry: Registry
  let denies: (request: StockRequest) => boolean
  let lines: string[]
  let requests: StockRequest[]
  let events: string[]
  const abort = { current: new AbortController() }

  beforeEach(async () => {
    server = await createServerFixture()
    abort.current = new AbortController()
    lines = []
    requests = []
    events = []
    denies = () => false
    registry = new Registry()
    const logLine = (level: string) => (_fields: object, message: string) => void lines.push(`${level} ${message}`)
    const log = {
      debug: () => {},
      info: logLine('info'),
      warn: logLine('warn'),
      error: logLine('error'),
    } as unknown as Logger
    rights = createRights({
      clock: server.clock,
      log,
      observe: createClientMetrics(registry).setMissingRight,
      events: {
        record: (kind, object, { reason }) => void events.push(`${reason} on ${kind.kind} ${object.metadata.name}`),
      },
    })
    const stockClient = asStock(server.client(), {
      allows: (request) => !denies(request),
      onRequest: (request) => void requests.push(request),
    })
    client = rights.track(stockClient)
    await server.client().create(configMapKind, { metadata: ref })
  })
  afterEach(async () => {
    abort.current.abort()
    await server.store.close()
  })

  const tryPatch = (value: string) =>
    client.patch(configMapKind, ref, dataPatch(value)).then(
      () => 'patched',
      (error: Error) => error.message,
    )
  const waitTurns = async () => {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
  }
  /** Runs a controller that patches the config map `settings`, and another that reconciles secrets without a request. */
  function startControllers() {
    const caches = createCacheSet({ client, clock: server.clock, random: () => 0.5 })
    const reconciledKeys: string[] = []
    const common = { clock: server.clock, random: () => 0.5 }
    const controllers = [
      createController({
        ...common,
        name: 'settings',
        sources: [source({ cache: caches.of(configMapKind), keysOf: ({ metadata }) => [metadata.name] })],
        async reconcile(key) {
          if (key !== 'settings') return done
          await client.patch(configMapKind, ref, dataPatch('new'))
          reconciledKeys.push(key)
          return done
        },
      }),
      createController({
        ...common,
        name: 'secrets',
        sources: [source({ cache: caches.of(secretKind), keysOf: ({ metadata }) => [metadata.name] })],
        reconcile: async (key) => {
          reconciledKeys.push(key)
          return done
        },
      }),
    ]
    for (const { run } of controllers) void run(abort.current.signal)
    abort.current.signal.addEventListener('abort', () => void caches.stop())
    return { reconciledKeys, synced: caches.whenSyncedOrNotServed(abort.current.signal) }
  }

  it('SYS-29 are logged as information if the caller can do without them', async () => {
    denies = ({ verb }) => verb === 'get'
    const denialMessage = 'defaults are used'
    await expect(client.get(configMapKind, ref, { denialMessage })).rejects.toThrow(/cannot get resource/)
    expect(lines).toEqual(['info cannot get configmaps until a role grants it: defaults are used'])
    expect(rights.notes()).toEqual([expect.stringContaining('cannot get configmaps')])
  })

  it('SYS-29 are logged once, set a metric and are listed in the health details', async () => {
    denies = ({ verb, kind }) => verb === 'patch' && kind.kind === 'ConfigMap'
    expect(await tryPatch('1')).toMatch(/cannot patch resource "configmaps"/)
    await tryPatch('2')
    await waitTurns()
    expect(lines).toEqual([
      'error missing permission: cannot patch configmaps; features that need it are out of service until a role grants it',
    ])
    expect(await registry.metrics()).toMatch(/stowage_missing_rights\{verb="patch",resource="configmaps"\} 1/)
    const monitoring = await serveMonitoring({
      host: '127.0.0.1',
      port: 0,
      registry,
      metricsPath: '/metrics',
      health: () => ({ '/healthz': () => undefined, '/readyz': () => 'not synced' }),
      notes: rights.notes,
    })
    const [healthResponse, readyResponse] = await Promise.all(
      ['/healthz', '/readyz'].map((path) => fetch(monitoring.url + path)),
    )
    expect([healthResponse!.status, readyResponse!.status]).toEqual([200, 500])
    expect(await healthResponse!.text()).toMatch(/^ok\nmissing permission since \S+: cannot patch configmaps\n$/)
    expect(await readyResponse!.text()).toMatch(/^not synced\nmissing permission .*\n$/)
    await monitoring.stop()
  })

  it('SYS-29 are recorded as one event on the object of the request', async () => {
    denies = ({ verb }) => verb === 'patch'
    await tryPatch('1')
    await tryPatch('2')
    await waitTurns()
    expect(events).toEqual(['MissingRight on ConfigMap settings'])
  })

  it('SYS-29 are reported once for each feature, with its name', async () => {
    const entries: string[] = []
    const log = {
      debug: () => {},
      info: (_fields: object, message: string) => void entries.push(`info ${message}`),
      warn: (_fields: object, message: string) => void entries.push(`warn ${message}`),
      error: (_fields: object, message: string) => void entries.push(`error ${message}`),
    } as unknown as Logger
    const featureOf = (_verb: string, resource: string) => (resource === 'configmaps' ? 'settings' : undefined)
    const featureRights = createRights({ clock: server.clock, log, featureOf })
    let isDenied = true
    const trackedClient = featureRights.track(
      asStock(server.client(), { allows: ({ kind }) => !isDenied || kind.kind !== 'ConfigMap' }),
    )
    const request = async () => {
      await trackedClient.list(configMapKind).catch(() => {})
      await trackedClient.get(configMapKind, ref).catch(() => {})
    }
    await request()
    await request()
    expect(entries).toEqual([
      'warn the feature settings is out of service until a role grants its permissions: cannot list configmaps',
    ])
    expect(featureRights.notes()).toEqual([
      expect.stringMatching(/cannot list configmaps; the feature settings is out of service$/),
      expect.stringMatching(/cannot get configmaps; the feature settings is out of service$/),
    ])
    isDenied = false
    await request()
    expect(entries.slice(1)).toEqual(['info the missing permission was granted; the feature is in service again'])
  })

  it('SYS-29 of requests without an object are recorded as one event on the lease', async () => {
    const lease = { namespace: 'default', name: 'leader' }
    await server.client().create(leaseKind, { metadata: lease, spec: {} })
    rights.recordOnLease(lease)
    denies = ({ verb, kind }) => verb === 'list' && kind.kind === 'ConfigMap'
    await client.list(configMapKind).catch(() => {})
    await client.list(configMapKind).catch(() => {})
    await waitTurns()
    expect(events).toEqual(['MissingRight on Lease leader'])
  })

  it('are reported for the failed write of a commit', async () => {
    denies = ({ verb, subresource }) => verb === 'update' && subresource === 'status'
    const object = await client.get(configMapKind, ref)
    const commit = client.commit([
      { do: 'patch', kind: configMapKind, ref, patch: dataPatch('1') },
      { do: 'update', kind: configMapKind, object: object as KubeObject, subresource: 'status' },
    ])
    await expect(commit).rejects.toThrow(/cannot update/)
    expect(rights.listMissing()).toMatchObject([{ verb: 'update', resource: 'configmaps/status' }])
  })

  it('are cleared when a request that needs them succeeds', async () => {
    denies = ({ verb }) => verb === 'patch'
    await tryPatch('1')
    denies = () => false
    expect(await tryPatch('2')).toBe('patched')
    expect(rights.notes()).toEqual([])
    expect(await registry.metrics()).not.toMatch(/stowage_missing_rights\{/)
    expect(lines.at(-1)).toBe('info the missing permission was granted; the feature is in service again')
  })

  it('do not include a denial by admission', async () => {
    await server.client().create(secretKind, { metadata: { namespace: 'default', name: 'a' } })
    const quota = new ApiError(403, 'Forbidden', 'secrets "a" is forbidden: exceeded quota: team, requested: count=1')
    const deniedClient = rights.track({ ...client, get: () => Promise.reject(quota) } as Client)
    await deniedClient.get(secretKind, { namespace: 'default', name: 'a' }).catch(() => {})
    expect(rights.listMissing()).toEqual([])
  })

  it('SYS-29 take one controller out of service, without a hot loop, until they are granted', async () => {
    denies = ({ verb }) => verb === 'patch'
    const { reconciledKeys } = startControllers()
    await server.client().create(secretKind, { metadata: { namespace: 'default', name: 'unrelated' } })
    await server.waitUntil(() => reconciledKeys.includes('unrelated'), 'the other controller to work')
    const countPatches = () => requests.filter(({ verb }) => verb === 'patch').length
    await server.waitUntil(() => countPatches() > 0, 'the first attempt')
    const patchesBefore = countPatches()
    const writer = server.client()
    for (let minute = 0; minute < 10; minute++) {
      await writer.patch(configMapKind, ref, dataPatch(String(minute))) // changes to the object cause no attempt
      for (let i = 0; i < 6; i++) await server.clock.advance(10_000)
      await waitTurns()
    }
    expect(countPatches() - patchesBefore).toBeLessThanOrEqual(20)
    denies = () => false
    await server.waitUntil(() => reconciledKeys.includes('settings'), 'the controller to recover')
    expect(rights.listMissing()).toEqual([])
  })

  it('SYS-29 to list and watch take one controller out of service until they are granted', async () => {
    denies = ({ kind }) => kind.kind === 'ConfigMap'
    const { reconciledKeys, synced } = startControllers()
    await server.client().create(secretKind, { metadata: { namespace: 'default', name: 'unrelated' } })
    await server.waitUntil(() => reconciledKeys.includes('unrelated'), 'the other controller to work')
    expect(await synced).toBe(true) // the process becomes ready without the denied kind
    const countRequests = () => requests.filter(({ kind }) => kind.kind === 'ConfigMap').length
    const requestsBefore = countRequests()
    for (let i = 0; i < 60; i++) {
      await server.clock.advance(10_000)
      await waitTurns()
    }
    expect(countRequests() - requestsBefore).toBeLessThanOrEqual(60)
    expect(lines.filter((line) => line.startsWith('error'))).toHaveLength(2) // list and watch
    denies = () => false
    await server.waitUntil(() => reconciledKeys.includes('settings'), 'the controller to recover')
  })

  it('SYS-29 set the metric until the last of several users has the permission', async () => {
    const deniedUsers = new Set(['ann', 'bob'])
    const clientOf = (user: string) =>
      rights.track(asStock(server.client(), { allows: ({ verb }) => verb !== 'patch' || !deniedUsers.has(user) }), user)
    const clients = { ann: clientOf('ann'), bob: clientOf('bob'), eve: clientOf('eve') }
    const patchAs = (user: keyof typeof clients) =>
      clients[user].patch(configMapKind, ref, dataPatch('1')).catch(() => undefined)
    const missingCount = async () => (await registry.getSingleMetric('stowage_missing_rights')!.get()).values.length
    await patchAs('ann')
    await patchAs('bob')
    await patchAs('eve') // a permission of one user does not clear that of another
    expect(rights.listMissing()).toHaveLength(2)
    expect(await missingCount()).toBe(1)
    deniedUsers.delete('ann')
    await patchAs('ann')
    expect(await missingCount()).toBe(1)
    deniedUsers.delete('bob')
    await patchAs('bob')
    expect(await missingCount()).toBe(0)
    expect(rights.listMissing()).toEqual([])
  })
})
