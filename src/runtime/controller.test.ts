import { afterEach, describe, expect, it } from 'vitest'
import { configMapKind } from '../api/kinds/config-map/config-map.ts'
import { namespaceKind } from '../api/kinds/namespace/namespace.ts'
import { inProcessClient } from '../apiserver/in-process/client.ts'
import { SYSTEM_USER } from '../apiserver/index.ts'
import { createServerFixture } from '../apiserver/server.fixture.ts'
import { keyOfObject } from '../client/object-key.ts'
import { createCacheSet } from './cache-set.ts'
import { createController, source } from './controller.ts'
import { createFlakyClient } from './flaky-client.fixture.ts'
import { createOperationRegistry } from './operations/registry.ts'
import { RETRY_ANNOTATION } from './operations/retry-request.ts'
import { done, stuck } from './outcome.ts'

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

const aConfigMap = (name: string, dependsOn = '') => ({
  metadata: { namespace: 'default', name, labels: { dependsOn } },
  data: { k: 'v' },
})

async function createFixture() {
  const { server, clock, store } = await createServerFixture()
  const client = createFlakyClient(inProcessClient(server.objects, SYSTEM_USER))
  const caches = createCacheSet({ client, clock, random: () => 0.5 })
  stops.push(async () => {
    await caches.stop()
    await store.close()
  })
  return { client, clock, caches, store }
}

async function waitUntil(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns++) {
    if (turns > 10_000) throw new Error('timed out waiting for a condition')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('a controller', () => {
  it('PLUS-15 retries the waiting keys of an object that requests a retry, even if its source ignores the update', async () => {
    const { client, clock, caches } = await createFixture()
    await client.create(configMapKind, aConfigMap('a'))
    const maps = caches.of(configMapKind)
    const retriedKeys: string[] = []
    let reconciles = 0
    const operations = createOperationRegistry({ process: 'test', clock })
    const controller = createController({
      name: 'test',
      clock,
      random: () => 0.5,
      metrics: { operations },
      operation: { component: 'test', name: 'Copy' },
      sources: [source({ cache: maps, keysOf: (object) => [keyOfObject(object)], matters: () => false })],
      onRetry: (key) => retriedKeys.push(key),
      reconcile: async () => (++reconciles > 1 ? done : stuck('the target is missing')),
    })
    const abort = new AbortController()
    const controllerRun = controller.run(abort.signal)
    const patch = (annotations: object) =>
      client.patch(
        configMapKind,
        { namespace: 'default', name: 'a' },
        { type: 'merge', body: { metadata: { annotations } } },
      )
    await waitUntil(() => controller.queue.stateOf('default/a')?.is === 'stuck')
    const { metadata } = maps.get('default/a')!
    expect(operations.list()).toMatchObject([
      {
        object: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name: 'a', uid: metadata.uid },
        ...{ component: 'test', operation: 'Copy', phase: 'Waiting', message: 'the target is missing', attempts: 1 },
      },
    ])
    await patch({ other: '1' })
    await waitUntil(() => maps.get('default/a')?.metadata.annotations?.other === '1')
    expect(reconciles).toBe(1)
    await patch({ [RETRY_ANNOTATION]: '2026-01-01T00:00:00Z' })
    await waitUntil(() => controller.queue.stateOf('default/a') === undefined)
    expect(retriedKeys).toEqual(['default/a'])
    expect(operations.list()).toEqual([])
    await patch({ [RETRY_ANNOTATION]: '2026-01-01T00:00:01Z' })
    await waitUntil(() => maps.get('default/a')?.metadata.annotations?.[RETRY_ANNOTATION]?.endsWith('01Z') === true)
    expect(reconciles).toBe(2) // no key waits
    abort.abort()
    await controllerRun
  })

  it('reconciles existing objects, changed objects, and keys enqueued by another object', async () => {
    const { client, clock, caches } = await createFixture()
    await client.create(configMapKind, aConfigMap('early'))
    const maps = caches.of(configMapKind)
    const namespaces = caches.of(namespaceKind)
    maps.addIndex('dependsOn', ({ metadata }) => [metadata.labels?.dependsOn ?? ''])
    const reconciledKeys: string[] = []
    const controller = createController({
      name: 'test',
      clock,
      random: () => 0.5,
      sources: [
        source({ cache: maps, keysOf: (object) => [keyOfObject(object)] }),
        source({
          cache: namespaces,
          keysOf: ({ metadata: { name = '' } }) => maps.byIndex('dependsOn', name).map(keyOfObject),
        }),
      ],
      reconcile: async (key) => {
        reconciledKeys.push(key)
        const dependsOn = maps.get(key)?.metadata.labels?.dependsOn
        if (dependsOn && !namespaces.get(dependsOn)) return stuck(`namespace "${dependsOn}" is missing`)
        return done
      },
    })
    const abort = new AbortController()
    const controllerRun = controller.run(abort.signal)
    await waitUntil(() => reconciledKeys.includes('default/early'))
    await client.create(configMapKind, aConfigMap('late', 'shop'))
    await waitUntil(() => controller.queue.stateOf('default/late')?.message === 'namespace "shop" is missing')
    await client.create(namespaceKind, { metadata: { name: 'shop' } })
    await waitUntil(() => controller.queue.stateOf('default/late') === undefined)
    expect(reconciledKeys.filter((key) => key === 'default/late').length).toBe(2)
    abort.abort()
    await controllerRun
  })

  it('skips an object without work, unless its key is not done, it had work before the change, or it is deleted', async () => {
    const { client, clock, caches } = await createFixture()
    const maps = caches.of(configMapKind)
    const reconciledKeys: string[] = []
    const controller = createController({
      name: 'test',
      clock,
      random: () => 0.5,
      sources: [
        source({
          cache: maps,
          keysOf: (object) => [keyOfObject(object)],
          mayNeedReconcile: ({ metadata }) => metadata.labels?.dependsOn !== '',
        }),
      ],
      reconcile: async (key) => {
        reconciledKeys.push(`${key} ${maps.get(key)?.metadata.labels?.dependsOn ?? 'deleted'}`)
        return key === 'default/stuck' ? stuck('always') : done
      },
    })
    const abort = new AbortController()
    const controllerRun = controller.run(abort.signal)
    const patchLabel = (name: string, value: string) =>
      client.patch(
        configMapKind,
        { namespace: 'default', name },
        {
          type: 'merge',
          body: { metadata: { labels: { dependsOn: value } }, data: { k: `${reconciledKeys.length}` } },
        },
      )
    const waitUntilLast = (entry: string) => waitUntil(() => reconciledKeys.at(-1) === entry)
    await client.create(configMapKind, aConfigMap('idle'))
    await client.create(configMapKind, aConfigMap('busy', 'a'))
    await waitUntilLast('default/busy a')
    await patchLabel('idle', '')
    await patchLabel('busy', '')
    await waitUntilLast('default/busy ')
    await patchLabel('busy', '')
    await client.create(configMapKind, aConfigMap('stuck', 'a'))
    await waitUntilLast('default/stuck a')
    await patchLabel('stuck', '')
    await waitUntilLast('default/stuck ')
    await patchLabel('stuck', '')
    await waitUntil(() => reconciledKeys.filter((entry) => entry === 'default/stuck ').length === 2)
    await client.delete(configMapKind, { namespace: 'default', name: 'idle' })
    await waitUntilLast('default/idle deleted')
    expect(reconciledKeys).toEqual([
      'default/busy a',
      'default/busy ',
      'default/stuck a',
      'default/stuck ',
      'default/stuck ',
      'default/idle deleted',
    ])
    abort.abort()
    await controllerRun
  })

  it('reconciles only after all its caches are synced', async () => {
    const { client, clock, caches } = await createFixture()
    await client.create(configMapKind, aConfigMap('a'))
    let namespaceCountAtFirstReconcile: number | undefined
    const maps = caches.of(configMapKind)
    const namespaces = caches.of(namespaceKind)
    const controller = createController({
      name: 'test',
      clock,
      random: () => 0.5,
      sources: [source({ cache: maps, keysOf: (object) => [keyOfObject(object)] })],
      reads: [namespaces],
      reconcile: async () => {
        namespaceCountAtFirstReconcile ??= namespaces.size
        return done
      },
    })
    const abort = new AbortController()
    const controllerRun = controller.run(abort.signal)
    await waitUntil(() => namespaceCountAtFirstReconcile !== undefined)
    expect(namespaceCountAtFirstReconcile).toBe(4) // the namespaces of a new cluster
    abort.abort()
    await controllerRun
  })
})
