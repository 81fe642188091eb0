// Tests the server with the official JavaScript client, which connects through a proxy that can cut its connections.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type ApiException,
  CoreV1Api,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  StorageV1Api,
  setHeaderOptions,
  type V1ConfigMap,
  type V1Status,
  Watch,
} from '@kubernetes/client-node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningServer, startServer } from '../helpers/server.ts'
import { startTcpProxy, type TcpProxy } from '../helpers/tcp-proxy.ts'

const namespace = 'shop'
const MAPS = `/api/v1/namespaces/${namespace}/configmaps`

interface Environment {
  readonly server: RunningServer
  readonly proxy: TcpProxy
  readonly config: KubeConfig
  readonly core: CoreV1Api
}

let dir: string
let environment: Environment
/** Its server compacts its history as soon as possible. */
let compactingEnvironment: Environment
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-javascript-'))
  environment = await startEnvironment(join(dir, 'data'))
  compactingEnvironment = await startEnvironment(join(dir, 'compacting'), ['--history-minutes', '0.0001'])
})
afterAll(async () => {
  for (const env of [environment, compactingEnvironment]) {
    await env?.proxy.close()
    await env?.server.stop()
  }
  await rm(dir, { recursive: true, force: true })
})

async function startEnvironment(dataDir: string, flags: readonly string[] = []): Promise<Environment> {
  const server = await startServer({ dataDir, command: 'server', flags })
  const proxy = await startTcpProxy(new URL(server.url).host)
  const config = new KubeConfig()
  config.loadFromFile(server.kubeconfig)
  config.clusters = config.clusters.map((cluster) => ({ ...cluster, server: `https://${proxy.endpoint}` }))
  const core = config.makeApiClient(CoreV1Api)
  await core.createNamespace({ body: { metadata: { name: namespace } } })
  return { server, proxy, config, core }
}

const addMap = (name: string, data: Record<string, string> = {}, labels: Record<string, string> = {}) =>
  environment.core.createNamespacedConfigMap({ namespace, body: { metadata: { name, labels }, data } })

/** Patches a config map without the proxy, so that changes continue while the client under test is disconnected. */
async function setData({ server }: Environment, name: string, data: Record<string, string>): Promise<void> {
  const type = { 'content-type': 'application/merge-patch+json' }
  expect(await server.call('PATCH', `${MAPS}/${name}`, { data }, type)).toMatchObject({ status: 200 })
}

/** Expects a call to fail, and returns its code and the Status that the server sent. */
async function expectError(call: Promise<unknown>): Promise<{ code: number; status: V1Status }> {
  const error = await call.then(
    () => expect.fail('the call succeeded'),
    (reason: ApiException<string | V1Status>) => reason,
  )
  return { code: error.code, status: typeof error.body === 'string' ? JSON.parse(error.body) : error.body }
}

const withStrategy = (strategy: PatchStrategy) => setHeaderOptions('Content-Type', strategy)

describe('typed client', () => {
  it('creates, replaces, deletes and lists claims', async () => {
    const { core } = environment
    const body = {
      metadata: { name: 'orders' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'gold' },
    }
    const createdClaim = await core.createNamespacedPersistentVolumeClaim({ namespace, body })
    expect(createdClaim).toMatchObject({
      spec: { ...body.spec, volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    })
    expect(createdClaim.metadata?.creationTimestamp).toBeInstanceOf(Date)
    createdClaim.metadata!.annotations = { note: 'kept' }
    const replacedClaim = await core.replaceNamespacedPersistentVolumeClaim({
      namespace,
      name: 'orders',
      body: createdClaim,
    })
    expect(replacedClaim.metadata?.annotations).toEqual({ note: 'kept' })
    await core.deleteNamespacedPersistentVolumeClaim({ namespace, name: 'orders', propagationPolicy: 'Background' })
    const remainingClaims = await core.listNamespacedPersistentVolumeClaim({ namespace })
    expect(remainingClaims.items.filter(({ metadata }) => !metadata?.deletionTimestamp)).toEqual([])
  })

  it('lists in pages', async () => {
    for (let n = 0; n < 5; n++) await addMap(`page-${n}`, {}, { paged: 'yes' })
    const names: (string | undefined)[][] = []
    let token: string | undefined
    do {
      const page = await environment.core.listNamespacedConfigMap({
        namespace,
        labelSelector: 'paged=yes',
        limit: 2,
        _continue: token,
      })
      names.push(page.items.map(({ metadata }) => metadata?.name))
      token = page.metadata?._continue
    } while (token)
    expect(names).toEqual([['page-0', 'page-1'], ['page-2', 'page-3'], ['page-4']])
  })

  it('SYS-4 reports errors by code and reason', async () => {
    await addMap('existing')
    const failingRead = environment.core.readNamespacedConfigMap({ namespace, name: 'missing' })
    expect(await expectError(failingRead)).toMatchObject({ code: 404, status: { reason: 'NotFound' } })
    expect(await expectError(addMap('existing'))).toMatchObject({ code: 409, status: { reason: 'AlreadyExists' } })
    expect(await expectError(addMap('Bad_Name'))).toMatchObject({
      code: 422,
      status: { reason: 'Invalid', details: { causes: [{ field: 'metadata.name' }] } },
    })
  })
})

describe('patch methods', () => {
  it('applies a JSON patch', async () => {
    await addMap('operated', { a: '1' })
    const patch = (body: unknown) =>
      environment.core.patchNamespacedConfigMap(
        { namespace, name: 'operated', body },
        withStrategy(PatchStrategy.JsonPatch),
      )
    expect(await patch([{ op: 'move', from: '/data/a', path: '/data/b' }])).toMatchObject({ data: { b: '1' } })
    const failingPatch = patch([{ op: 'test', path: '/data/b', value: '2' }])
    expect(await expectError(failingPatch)).toMatchObject({ code: 422, status: { reason: 'Invalid' } })
  })

  it('applies a JSON merge patch', async () => {
    await addMap('merged', { a: '1', b: '2' })
    const body = { data: { a: null, c: '3' } }
    const patch = environment.core.patchNamespacedConfigMap(
      { namespace, name: 'merged', body },
      withStrategy(PatchStrategy.MergePatch),
    )
    expect((await patch).data).toEqual({ b: '2', c: '3' })
  })

  it('applies a strategic merge patch, and merges lists by key', async () => {
    await environment.core.createNode({ body: { metadata: { name: 'n1' } } })
    const addCondition = (type: string) =>
      environment.core.patchNodeStatus(
        { name: 'n1', body: { status: { conditions: [{ type, status: 'True' }] } } },
        withStrategy(PatchStrategy.StrategicMergePatch),
      )
    await addCondition('Ready')
    const { status } = await addCondition('DiskPressure')
    expect(status?.conditions?.map(({ type }) => type).sort()).toEqual(['DiskPressure', 'Ready'])
  })

  it('applies an apply patch, and rejects a conflict unless it is forced', async () => {
    const apply = (data: Record<string, string>, fieldManager: string, force?: boolean) =>
      environment.core.patchNamespacedConfigMap(
        {
          namespace,
          name: 'applied',
          fieldManager,
          force,
          body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data },
        },
        withStrategy(PatchStrategy.ServerSideApply),
      )
    await apply({ a: '1', b: '2' }, 'owner')
    expect((await apply({ a: '1' }, 'owner')).data).toEqual({ a: '1' })
    expect(await expectError(apply({ a: '9' }, 'rival'))).toMatchObject({ code: 409, status: { reason: 'Conflict' } })
    expect((await apply({ a: '9' }, 'rival', true)).data).toEqual({ a: '9' })
  })
})

describe('KubernetesObjectApi', () => {
  it('creates, reads, patches, lists and deletes a StorageClass', async () => {
    const objects = KubernetesObjectApi.makeApiClient(environment.config)
    const silver = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'silver' },
      provisioner: 'disks.example.com',
    }
    expect(await objects.create(silver)).toMatchObject({ reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })
    await objects.patch({ ...silver, allowVolumeExpansion: true })
    expect(await objects.read(silver)).toMatchObject({ ...silver, allowVolumeExpansion: true })
    const storageClasses = await objects.list('storage.k8s.io/v1', 'StorageClass')
    expect(storageClasses.items.map(({ metadata }) => metadata?.name)).toEqual(['silver'])
    await objects.delete(silver)
    expect((await environment.config.makeApiClient(StorageV1Api).listStorageClass()).items).toEqual([])
    expect(await expectError(objects.read(silver))).toMatchObject({ code: 404 })
  })
})

describe('Watch', () => {
  interface WatchEvent {
    readonly type: string
    readonly object: any
  }

  /** Collects events until there are `count` of them or the stream ends. */
  async function collectEvents(
    { config }: Environment,
    query: Record<string, string>,
    count: number,
  ): Promise<WatchEvent[]> {
    const events: WatchEvent[] = []
    let abort: AbortController | undefined
    await new Promise<void>((resolve) => {
      const onEvent = (type: string, object: any) => {
        events.push({ type, object })
        if (events.length === count) resolve()
      }
      void new Watch(config)
        .watch(MAPS, query, onEvent, () => resolve())
        .then((controller) => {
          abort = controller
        })
    })
    abort?.abort()
    return events.slice(0, count)
  }

  it('SYS-3 receives every change once, in order, if it resumes from the last version', async () => {
    const { metadata } = await addMap('watched', { n: '0' })
    let resourceVersion = metadata!.resourceVersion!
    const receivedEvents: string[] = []
    for (let n = 1; n <= 6; n++) await setData(environment, 'watched', { n: String(n) })
    while (receivedEvents.length < 6) {
      const query = { resourceVersion, fieldSelector: 'metadata.name=watched' }
      for (const { type, object } of await collectEvents(environment, query, 2)) {
        receivedEvents.push(`${type} ${object.data.n}`)
        resourceVersion = object.metadata.resourceVersion
      }
    }
    expect(receivedEvents).toEqual([1, 2, 3, 4, 5, 6].map((n) => `MODIFIED ${n}`))
  })

  it('SYS-3 receives 410 Expired and ends if it starts from a compacted version', async () => {
    const resourceVersion = await createCompactedVersion()
    const events = await collectEvents(compactingEnvironment, { resourceVersion }, Number.POSITIVE_INFINITY)
    expect(events).toMatchObject([{ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }])
  })
})

/** Returns a resourceVersion that the server has compacted. */
async function createCompactedVersion(): Promise<string> {
  const { core } = compactingEnvironment
  const body = { metadata: { generateName: 'old-' } }
  const { metadata } = await core.createNamespacedConfigMap({ namespace, body })
  await compactVersion(metadata!.name!, metadata!.resourceVersion!)
  return metadata!.resourceVersion!
}

const COMPACTION_WRITES_MAX = 5_000

/** Writes to the config map until the version is compacted. */
async function compactVersion(name: string, version: string): Promise<void> {
  for (let n = 0; n < COMPACTION_WRITES_MAX; n++) {
    await setData(compactingEnvironment, name, { n: String(n) })
    const exactListPath = `${MAPS}?resourceVersion=${version}&resourceVersionMatch=Exact`
    if ((await compactingEnvironment.server.call('GET', exactListPath)).status === 410) return
  }
  expect.fail(`version ${version} was not compacted after ${COMPACTION_WRITES_MAX} writes`)
}

describe('makeInformer', () => {
  /** Creates an informer that restarts on errors, as its documentation requires. */
  function createInformer({ config, core }: Environment, labelSelector: string) {
    const received: string[] = []
    const pendingChecks = new Set<() => void>()
    let listCount = 0
    const list = () => {
      listCount++
      return core.listNamespacedConfigMap({ namespace, labelSelector })
    }
    const informer = makeInformer<V1ConfigMap>(config, MAPS, list, labelSelector)
    for (const verb of ['add', 'update', 'delete'] as const) {
      informer.on(verb, ({ metadata, data }) => {
        received.push(`${verb} ${metadata?.name} ${data?.n}`)
        for (const check of pendingChecks) check()
      })
    }
    informer.on('error', () => void informer.start())
    return {
      informer,
      received,
      countLists: () => listCount,
      waitFor: (condition: () => boolean) =>
        new Promise<void>((resolve) => {
          const check = () => {
            if (!condition()) return
            pendingChecks.delete(check)
            resolve()
          }
          pendingChecks.add(check)
          check()
        }),
    }
  }

  it('SYS-3 receives additions, updates and deletions', async () => {
    await addMap('first', { n: '0' }, { wave: 'a' })
    const { informer, received, waitFor } = createInformer(environment, 'wave=a')
    await informer.start()
    await addMap('second', { n: '1' }, { wave: 'a' })
    await addMap('unselected', { n: '1' }, { wave: 'z' })
    await setData(environment, 'second', { n: '2' })
    await environment.core.deleteNamespacedConfigMap({ namespace, name: 'second' })
    await waitFor(() => received.includes('delete second 2'))
    expect(received).toEqual(['add first 0', 'add second 1', 'update second 2', 'delete second 2'])
    expect(informer.list().map(({ metadata }) => metadata?.name)).toEqual(['first'])
    await informer.stop()
  })

  it('SYS-3 resumes after a lost connection without listing again', async () => {
    await addMap('steady', { n: '0' }, { wave: 'b' })
    const { informer, received, countLists, waitFor } = createInformer(environment, 'wave=b')
    await informer.start()
    await setData(environment, 'steady', { n: '1' })
    await waitFor(() => received.includes('update steady 1'))
    for (const n of ['2', '3', '4']) {
      environment.proxy.cut()
      await setData(environment, 'steady', { n })
      environment.proxy.restore()
    }
    await waitFor(() => received.includes('update steady 4'))
    expect(received).toEqual(['add steady 0', ...[1, 2, 3, 4].map((n) => `update steady ${n}`)])
    expect(countLists()).toBe(1)
    await informer.stop()
  })

  it('SYS-3 lists again when the missed events are compacted', async () => {
    const body = { metadata: { name: 'busy', labels: { wave: 'c' } }, data: { n: 'first' } }
    const { metadata } = await compactingEnvironment.core.createNamespacedConfigMap({ namespace, body })
    const { informer, received, countLists, waitFor } = createInformer(compactingEnvironment, 'wave=c')
    await informer.start()
    compactingEnvironment.proxy.cut()
    await compactVersion('busy', metadata!.resourceVersion!)
    await setData(compactingEnvironment, 'busy', { n: 'last' })
    compactingEnvironment.proxy.restore()
    await waitFor(() => received.includes('update busy last'))
    expect(received[0]).toBe('add busy first')
    expect(countLists()).toBe(2)
    await informer.stop()
  })
})
