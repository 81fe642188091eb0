import { describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { aCapacity, CAPACITIES, createCapacityFixture, DRIVER } from './capacity.fixture.ts'
import { createCapacityCleaner } from './cleaner.ts'
import { managedBy } from './managed-by.ts'

const MISSING_FOR_MS = 60_000
const LONG_NODE_NAME = `node-${'x'.repeat(60)}`

interface CleanerOptions {
  /** Wraps the client of the cleaner. */
  readonly wrapClient?: (client: Client) => Client
  readonly drivers?: readonly string[] | 'all'
}

async function createCleanerFixture() {
  const fixture = await createCapacityFixture()
  const names = async () => (await fixture.objects()).map(({ metadata }) => metadata.name)
  const createObject = (name: string, label: string) =>
    fixture.server.post(CAPACITIES, aCapacity(name, 'fast', 'a', {}, label))
  async function start({ wrapClient = (client) => client, drivers = [DRIVER] }: CleanerOptions = {}) {
    const sharedOptions = {
      client: wrapClient(fixture.server.clientOf('capacity-cleanup')),
      clock: fixture.server.clock,
      random: () => 0.5,
      log: silentLog,
    }
    const caches = createCacheSet(sharedOptions)
    const cleaner = createCapacityCleaner({
      ...sharedOptions,
      caches,
      missingForMs: MISSING_FOR_MS,
      ...(drivers === 'all' ? {} : { drivers }),
    })
    const abort = new AbortController()
    const run = cleaner.run(abort.signal)
    await fixture.settle()
    return {
      queue: cleaner.queues[0]!,
      async stop() {
        abort.abort()
        await run
        await caches.stop()
      },
    }
  }
  return { ...fixture, names, createObject, startCleaner: start }
}

describe('the cleaner', () => {
  it('CAP-9 deletes objects of deleted nodes and of nodes without the driver after the configured time', async () => {
    const fixture = await createCleanerFixture()
    for (const node of ['n1', 'n2', LONG_NODE_NAME]) {
      await fixture.createNode(node, {})
      await fixture.createObject(`of-${node.slice(0, 6)}`, managedBy(node))
    }
    await fixture.createObject('of-gone', managedBy('gone'))
    const cleaner = await fixture.startCleaner()
    await fixture.removeDriver('n2')
    await fixture.removeDriver(LONG_NODE_NAME)
    await fixture.advance(MISSING_FOR_MS - 1)
    expect(await fixture.names()).toHaveLength(4)
    expect(cleaner.queue.stateOf(`${DRIVER} ${managedBy('n2')}`)).toMatchObject({ is: 'waiting' })
    await fixture.advance(1)
    expect(await fixture.names()).toEqual(['of-n1'])
    await cleaner.stop()
  })

  it('CAP-9 keeps the objects of a driver that returns in time, and restarts its timer', async () => {
    const fixture = await createCleanerFixture()
    await fixture.createNode('n1', {})
    await fixture.createObject('of-n1', managedBy('n1'))
    const cleaner = await fixture.startCleaner()
    await fixture.removeDriver('n1')
    await fixture.advance(MISSING_FOR_MS - 1_000)
    const drivers = [{ name: DRIVER, nodeID: 'n1' }]
    await fixture.server.patch('/apis/storage.k8s.io/v1/csinodes/n1', { spec: { drivers } }, 'merge')
    await fixture.settle()
    await fixture.removeDriver('n1')
    await fixture.advance(MISSING_FOR_MS - 1_000)
    expect(await fixture.names()).toEqual(['of-n1'])
    await fixture.advance(1_000)
    expect(await fixture.names()).toEqual([])
    await cleaner.stop()
  })

  it('CAP-9 restarts its timers when it is restarted', async () => {
    const fixture = await createCleanerFixture()
    await fixture.createObject('of-gone', managedBy('gone'))
    const firstCleaner = await fixture.startCleaner()
    await fixture.advance(MISSING_FOR_MS - 1_000)
    await firstCleaner.stop()
    const secondCleaner = await fixture.startCleaner()
    await fixture.advance(MISSING_FOR_MS - 1_000)
    expect(await fixture.names()).toEqual(['of-gone'])
    await fixture.advance(1_000)
    expect(await fixture.names()).toEqual([])
    await secondCleaner.stop()
  })

  it('CAP-9 keeps objects of a cluster-wide producer, other drivers and users', async () => {
    const fixture = await createCleanerFixture()
    await fixture.createObject('central', managedBy())
    await fixture.createObject('user-created', 'user')
    await fixture.createObject('other-driver', managedBy('gone'))
    const labels = { 'csi.storage.k8s.io/drivername': 'other.example' }
    await fixture.server.patch(`${CAPACITIES}/other-driver`, { metadata: { labels } }, 'merge')
    const cleaner = await fixture.startCleaner()
    await fixture.advance(10 * MISSING_FOR_MS)
    expect(await fixture.names()).toEqual(['central', 'other-driver', 'user-created'])
    await cleaner.stop()
  })

  it('CAP-9 handles every driver separately if no driver is configured', async () => {
    const fixture = await createCleanerFixture()
    await fixture.createNode('n1', {})
    const otherDriver = 'other.example'
    const drivers = [DRIVER, otherDriver].map((name) => ({ name, nodeID: 'n1' }))
    await fixture.server.patch('/apis/storage.k8s.io/v1/csinodes/n1', { spec: { drivers } }, 'merge')
    await fixture.createObject('kept', managedBy('n1'))
    await fixture.createObject('deleted', managedBy('n1'))
    const labels = { 'csi.storage.k8s.io/drivername': otherDriver }
    await fixture.server.patch(`${CAPACITIES}/deleted`, { metadata: { labels } }, 'merge')
    await fixture.createObject('user-created', 'user')
    const cleaner = await fixture.startCleaner({ drivers: 'all' })
    await fixture.server.patch(
      '/apis/storage.k8s.io/v1/csinodes/n1',
      { spec: { drivers: drivers.slice(0, 1) } },
      'merge',
    )
    await fixture.advance(MISSING_FOR_MS - 1)
    expect(await fixture.names()).toEqual(['deleted', 'kept', 'user-created'])
    await fixture.advance(1)
    expect(await fixture.names()).toEqual(['kept', 'user-created'])
    await cleaner.stop()
  })

  it.each(['n1', LONG_NODE_NAME])(
    'CAP-9 reads the CSINode %s from the server before it deletes objects',
    async (node) => {
      const fixture = await createCleanerFixture()
      await fixture.createNode(node, {})
      await fixture.createObject('of-node', managedBy(node))
      // The watch of this client returns no CSINodes.
      const hideCsiNodes = (client: Client): Client => ({
        ...client,
        async *watch(kind, request) {
          if (kind.kind !== 'CSINode') return yield* client.watch(kind, request)
          yield { type: 'bookmark', resourceVersion: '1', endsInitialEvents: true }
          await new Promise<void>((resolve) => request.signal.addEventListener('abort', () => resolve()))
        },
      })
      const cleaner = await fixture.startCleaner({ wrapClient: hideCsiNodes })
      await fixture.advance(2 * MISSING_FOR_MS)
      expect(await fixture.names()).toEqual(['of-node'])
      await cleaner.stop()
    },
  )
})
