// The official JavaScript client against a server: lists, watches, informers, patches and objects of any kind.
// Connections go through a proxy, so that tests can cut them.
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

interface Ground {
  readonly server: RunningServer
  readonly proxy: TcpProxy
  readonly config: KubeConfig
  readonly core: CoreV1Api
}

let dir: string
let ground: Ground
/** A server that compacts its history as soon as possible. */
let forgetful: Ground
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stowage-javascript-'))
  ground = await openGround(join(dir, 'data'))
  forgetful = await openGround(join(dir, 'forgetful'), ['--history-minutes', '0.0001'])
})
afterAll(async () => {
  for (const each of [ground, forgetful]) {
    await each?.proxy.close()
    await each?.server.stop()
  }
  await rm(dir, { recursive: true, force: true })
})

async function openGround(dataDir: string, flags: readonly string[] = []): Promise<Ground> {
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
  ground.core.createNamespacedConfigMap({ namespace, body: { metadata: { name, labels }, data } })

/** Bypasses the proxy: changes continue while the client under test is disconnected. */
async function setData({ server }: Ground, name: string, data: Record<string, string>): Promise<void> {
  const type = { 'content-type': 'application/merge-patch+json' }
  expect(await server.call('PATCH', `${MAPS}/${name}`, { data }, type)).toMatchObject({ status: 200 })
}

/** The expected error of a call: its code, and the Status that the server sent. */
async function refusal(call: Promise<unknown>): Promise<{ code: number; status: V1Status }> {
  const error = await call.then(
    () => expect.fail('the call succeeded'),
    (reason: ApiException<string | V1Status>) => reason,
  )
  return { code: error.code, status: typeof error.body === 'string' ? JSON.parse(error.body) : error.body }
}

const as = (strategy: PatchStrategy) => setHeaderOptions('Content-Type', strategy)

describe('typed calls', () => {
  it('SYS-4 create, read, replace and delete a claim', async () => {
    const { core } = ground
    const body = {
      metadata: { name: 'orders' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'gold' },
    }
    const created = await core.createNamespacedPersistentVolumeClaim({ namespace, body })
    expect(created).toMatchObject({ spec: { ...body.spec, volumeMode: 'Filesystem' }, status: { phase: 'Pending' } })
    expect(created.metadata?.creationTimestamp).toBeInstanceOf(Date)
    created.metadata!.annotations = { note: 'kept' }
    const replaced = await core.replaceNamespacedPersistentVolumeClaim({ namespace, name: 'orders', body: created })
    expect(replaced.metadata?.annotations).toEqual({ note: 'kept' })
    await core.deleteNamespacedPersistentVolumeClaim({ namespace, name: 'orders', propagationPolicy: 'Background' })
    const left = await core.listNamespacedPersistentVolumeClaim({ namespace })
    expect(left.items.filter(({ metadata }) => !metadata?.deletionTimestamp)).toEqual([])
  })

  it('SYS-4 list in pages', async () => {
    for (let n = 0; n < 5; n++) await addMap(`page-${n}`, {}, { paged: 'yes' })
    const names: (string | undefined)[][] = []
    let token: string | undefined
    do {
      const page = await ground.core.listNamespacedConfigMap({
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

  it('SYS-4 report errors by code and reason', async () => {
    await addMap('once')
    const read = ground.core.readNamespacedConfigMap({ namespace, name: 'nothing' })
    expect(await refusal(read)).toMatchObject({ code: 404, status: { reason: 'NotFound' } })
    expect(await refusal(addMap('once'))).toMatchObject({ code: 409, status: { reason: 'AlreadyExists' } })
    expect(await refusal(addMap('Bad_Name'))).toMatchObject({
      code: 422,
      status: { reason: 'Invalid', details: { causes: [{ field: 'metadata.name' }] } },
    })
  })
})

describe('patches', () => {
  it('SYS-4 as JSON operations', async () => {
    await addMap('operated', { a: '1' })
    const patch = (body: unknown) =>
      ground.core.patchNamespacedConfigMap({ namespace, name: 'operated', body }, as(PatchStrategy.JsonPatch))
    expect(await patch([{ op: 'move', from: '/data/a', path: '/data/b' }])).toMatchObject({ data: { b: '1' } })
    const failing = patch([{ op: 'test', path: '/data/b', value: '2' }])
    expect(await refusal(failing)).toMatchObject({ code: 422, status: { reason: 'Invalid' } })
  })

  it('SYS-4 as a merge', async () => {
    await addMap('merged', { a: '1', b: '2' })
    const body = { data: { a: null, c: '3' } }
    const patch = ground.core.patchNamespacedConfigMap(
      { namespace, name: 'merged', body },
      as(PatchStrategy.MergePatch),
    )
    expect((await patch).data).toEqual({ b: '2', c: '3' })
  })

  it('SYS-4 as a strategic merge, lists by key', async () => {
    await ground.core.createNode({ body: { metadata: { name: 'n1' } } })
    const condition = (type: string) =>
      ground.core.patchNodeStatus(
        { name: 'n1', body: { status: { conditions: [{ type, status: 'True' }] } } },
        as(PatchStrategy.StrategicMergePatch),
      )
    await condition('Ready')
    const { status } = await condition('DiskPressure')
    expect(status?.conditions?.map(({ type }) => type).sort()).toEqual(['DiskPressure', 'Ready'])
  })

  it('SYS-2 as a server-side apply', async () => {
    const apply = (data: Record<string, string>, fieldManager: string, force?: boolean) =>
      ground.core.patchNamespacedConfigMap(
        {
          namespace,
          name: 'applied',
          fieldManager,
          force,
          body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data },
        },
        as(PatchStrategy.ServerSideApply),
      )
    await apply({ a: '1', b: '2' }, 'owner')
    expect((await apply({ a: '1' }, 'owner')).data).toEqual({ a: '1' })
    expect(await refusal(apply({ a: '9' }, 'rival'))).toMatchObject({ code: 409, status: { reason: 'Conflict' } })
    expect((await apply({ a: '9' }, 'rival', true)).data).toEqual({ a: '9' })
  })
})

describe('KubernetesObjectApi', () => {
  it('SYS-2 creates, reads, patches, lists and deletes objects of any kind', async () => {
    const objects = KubernetesObjectApi.makeApiClient(ground.config)
    const silver = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'silver' },
      provisioner: 'disks.example.com',
    }
    expect(await objects.create(silver)).toMatchObject({ reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })
    await objects.patch({ ...silver, allowVolumeExpansion: true })
    expect(await objects.read(silver)).toMatchObject({ ...silver, allowVolumeExpansion: true })
    const listed = await objects.list('storage.k8s.io/v1', 'StorageClass')
    expect(listed.items.map(({ metadata }) => metadata?.name)).toEqual(['silver'])
    await objects.delete(silver)
    expect((await ground.config.makeApiClient(StorageV1Api).listStorageClass()).items).toEqual([])
    expect(await refusal(objects.read(silver))).toMatchObject({ code: 404 })
  })
})

describe('watches', () => {
  interface Seen {
    readonly type: string
    readonly object: any
  }

  /** Every event until there are `count` of them or the stream ends. */
  async function collect({ config }: Ground, query: Record<string, string>, count: number): Promise<Seen[]> {
    const seen: Seen[] = []
    let abort: AbortController | undefined
    await new Promise<void>((resolve) => {
      const note = (type: string, object: any) => {
        seen.push({ type, object })
        if (seen.length === count) resolve()
      }
      void new Watch(config)
        .watch(MAPS, query, note, () => resolve())
        .then((controller) => {
          abort = controller
        })
    })
    abort?.abort()
    return seen.slice(0, count)
  }

  it('SYS-3 resumed from the last version see every change once, in order', async () => {
    const { metadata } = await addMap('watched', { n: '0' })
    let since = metadata!.resourceVersion!
    const seen: string[] = []
    for (let n = 1; n <= 6; n++) await setData(ground, 'watched', { n: String(n) })
    while (seen.length < 6) {
      const query = { resourceVersion: since, fieldSelector: 'metadata.name=watched' }
      for (const { type, object } of await collect(ground, query, 2)) {
        seen.push(`${type} ${object.data.n}`)
        since = object.metadata.resourceVersion
      }
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6].map((n) => `MODIFIED ${n}`))
  })

  it('SYS-3 from a compacted version get 410 Expired and end', async () => {
    const since = await forgottenVersion()
    const seen = await collect(forgetful, { resourceVersion: since }, Number.POSITIVE_INFINITY)
    expect(seen).toMatchObject([{ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }])
  })
})

/** A resourceVersion that the server has compacted. */
async function forgottenVersion(): Promise<string> {
  const { core } = forgetful
  const body = { metadata: { generateName: 'old-' } }
  const { metadata } = await core.createNamespacedConfigMap({ namespace, body })
  await forget(metadata!.name!, metadata!.resourceVersion!)
  return metadata!.resourceVersion!
}

const FORGETTING_WRITES_MAX = 5_000

/** Writes to the config map until the version is compacted. */
async function forget(name: string, version: string): Promise<void> {
  for (let n = 0; n < FORGETTING_WRITES_MAX; n++) {
    await setData(forgetful, name, { n: String(n) })
    const exactly = `${MAPS}?resourceVersion=${version}&resourceVersionMatch=Exact`
    if ((await forgetful.server.call('GET', exactly)).status === 410) return
  }
  expect.fail(`version ${version} was still kept after ${FORGETTING_WRITES_MAX} writes`)
}

describe('informers', () => {
  /** An informer that restarts on errors, as its documentation requires. */
  function follow({ config, core }: Ground, labelSelector: string) {
    const received: string[] = []
    const waiting = new Set<() => void>()
    let lists = 0
    const list = () => {
      lists++
      return core.listNamespacedConfigMap({ namespace, labelSelector })
    }
    const informer = makeInformer<V1ConfigMap>(config, MAPS, list, labelSelector)
    for (const verb of ['add', 'update', 'delete'] as const) {
      informer.on(verb, ({ metadata, data }) => {
        received.push(`${verb} ${metadata?.name} ${data?.n}`)
        for (const check of waiting) check()
      })
    }
    informer.on('error', () => void informer.start())
    return {
      informer,
      received,
      lists: () => lists,
      until: (condition: () => boolean) =>
        new Promise<void>((resolve) => {
          const check = () => {
            if (!condition()) return
            waiting.delete(check)
            resolve()
          }
          waiting.add(check)
          check()
        }),
    }
  }

  it('SYS-3 receive additions, updates and deletions', async () => {
    await addMap('first', { n: '0' }, { wave: 'a' })
    const { informer, received, until } = follow(ground, 'wave=a')
    await informer.start()
    await addMap('second', { n: '1' }, { wave: 'a' })
    await addMap('unselected', { n: '1' }, { wave: 'z' })
    await setData(ground, 'second', { n: '2' })
    await ground.core.deleteNamespacedConfigMap({ namespace, name: 'second' })
    await until(() => received.includes('delete second 2'))
    expect(received).toEqual(['add first 0', 'add second 1', 'update second 2', 'delete second 2'])
    expect(informer.list().map(({ metadata }) => metadata?.name)).toEqual(['first'])
    await informer.stop()
  })

  it('SYS-3 resume after a lost connection without listing again', async () => {
    await addMap('steady', { n: '0' }, { wave: 'b' })
    const { informer, received, lists, until } = follow(ground, 'wave=b')
    await informer.start()
    await setData(ground, 'steady', { n: '1' })
    await until(() => received.includes('update steady 1'))
    for (const n of ['2', '3', '4']) {
      ground.proxy.cut()
      await setData(ground, 'steady', { n })
      ground.proxy.restore()
    }
    await until(() => received.includes('update steady 4'))
    expect(received).toEqual(['add steady 0', ...[1, 2, 3, 4].map((n) => `update steady ${n}`)])
    expect(lists()).toBe(1)
    await informer.stop()
  })

  it('SYS-3 list again when the missed events are compacted', async () => {
    const body = { metadata: { name: 'busy', labels: { wave: 'c' } }, data: { n: 'first' } }
    const { metadata } = await forgetful.core.createNamespacedConfigMap({ namespace, body })
    const { informer, received, lists, until } = follow(forgetful, 'wave=c')
    await informer.start()
    forgetful.proxy.cut()
    await forget('busy', metadata!.resourceVersion!)
    await setData(forgetful, 'busy', { n: 'last' })
    forgetful.proxy.restore()
    await until(() => received.includes('update busy last'))
    expect(received[0]).toBe('add busy first')
    expect(lists()).toBe(2)
    await informer.stop()
  })
})
