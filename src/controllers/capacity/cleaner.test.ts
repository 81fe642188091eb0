import { describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { aCapacity, CAPACITIES, createCapacityFixture, DRIVER } from './capacity.fixture.ts'
import { createCapacityCleaner } from './cleaner.ts'
import { managedBy } from './managed-by.ts'

const GONE_FOR_MS = 60_000
const LONG = `node-${'x'.repeat(60)}`

interface CleanerOptions {
  /** Wraps the client. */
  readonly around?: (client: Client) => Client
  readonly drivers?: readonly string[] | 'all'
}

async function createCleanerFixture() {
  const fixture = await createCapacityFixture()
  const names = async () => (await fixture.objects()).map(({ metadata }) => metadata.name)
  const anObject = (name: string, label: string) =>
    fixture.server.post(CAPACITIES, aCapacity(name, 'fast', 'a', {}, label))
  async function start({ around = (client) => client, drivers = [DRIVER] }: CleanerOptions = {}) {
    const common = { client: around(fixture.client), clock: fixture.server.clock, random: () => 0.5, log: silentLog }
    const caches = createCacheSet(common)
    const cleaner = createCapacityCleaner({
      ...common,
      caches,
      goneForMs: GONE_FOR_MS,
      ...(drivers === 'all' ? {} : { drivers }),
    })
    const abort = new AbortController()
    const over = cleaner.run(abort.signal)
    await fixture.settle()
    return {
      queue: cleaner.queues[0]!,
      async stop() {
        abort.abort()
        await over
        await caches.stop()
      },
    }
  }
  return { ...fixture, names, anObject, startCleaner: start }
}

describe('the cleaner', () => {
  it('CAP-9 deletes objects of deleted nodes and nodes without the driver after the set time', async () => {
    const fixture = await createCleanerFixture()
    for (const node of ['n1', 'n2', LONG]) {
      await fixture.aNode(node, {})
      await fixture.anObject(`of-${node.slice(0, 6)}`, managedBy(node))
    }
    await fixture.anObject('of-gone', managedBy('gone'))
    const cleaner = await fixture.startCleaner()
    await fixture.dropDriver('n2')
    await fixture.dropDriver(LONG)
    await fixture.pass(GONE_FOR_MS - 1)
    expect(await fixture.names()).toHaveLength(4)
    expect(cleaner.queue.standing(`${DRIVER} ${managedBy('n2')}`)).toMatchObject({ is: 'waiting' })
    await fixture.pass(1)
    expect(await fixture.names()).toEqual(['of-n1'])
    await cleaner.stop()
  })

  it('CAP-9 keeps the objects of a driver that returns in time, and restarts its timer', async () => {
    const fixture = await createCleanerFixture()
    await fixture.aNode('n1', {})
    await fixture.anObject('of-n1', managedBy('n1'))
    const cleaner = await fixture.startCleaner()
    await fixture.dropDriver('n1')
    await fixture.pass(GONE_FOR_MS - 1_000)
    const drivers = [{ name: DRIVER, nodeID: 'n1' }]
    await fixture.server.patch('/apis/storage.k8s.io/v1/csinodes/n1', { spec: { drivers } }, 'merge')
    await fixture.settle()
    await fixture.dropDriver('n1')
    await fixture.pass(GONE_FOR_MS - 1_000)
    expect(await fixture.names()).toEqual(['of-n1'])
    await fixture.pass(1_000)
    expect(await fixture.names()).toEqual([])
    await cleaner.stop()
  })

  it('CAP-9 restarts the timer when the cleaner restarts', async () => {
    const fixture = await createCleanerFixture()
    await fixture.anObject('of-gone', managedBy('gone'))
    const first = await fixture.startCleaner()
    await fixture.pass(GONE_FOR_MS - 1_000)
    await first.stop()
    const second = await fixture.startCleaner()
    await fixture.pass(GONE_FOR_MS - 1_000)
    expect(await fixture.names()).toEqual(['of-gone'])
    await fixture.pass(1_000)
    expect(await fixture.names()).toEqual([])
    await second.stop()
  })

  it('CAP-9 leaves objects of a cluster-wide producer, of other drivers and manual ones alone', async () => {
    const fixture = await createCleanerFixture()
    await fixture.anObject('central', managedBy())
    await fixture.anObject('by-hand', 'someone')
    await fixture.anObject('other-driver', managedBy('gone'))
    const labels = { 'csi.storage.k8s.io/drivername': 'other.example' }
    await fixture.server.patch(`${CAPACITIES}/other-driver`, { metadata: { labels } }, 'merge')
    const cleaner = await fixture.startCleaner()
    await fixture.pass(10 * GONE_FOR_MS)
    expect(await fixture.names()).toEqual(['by-hand', 'central', 'other-driver'])
    await cleaner.stop()
  })

  it('CAP-9 handles every driver separately when none is named', async () => {
    const fixture = await createCleanerFixture()
    await fixture.aNode('n1', {})
    const other = 'other.example'
    const drivers = [DRIVER, other].map((name) => ({ name, nodeID: 'n1' }))
    await fixture.server.patch('/apis/storage.k8s.io/v1/csinodes/n1', { spec: { drivers } }, 'merge')
    await fixture.anObject('stays', managedBy('n1'))
    await fixture.anObject('goes', managedBy('n1'))
    const labels = { 'csi.storage.k8s.io/drivername': other }
    await fixture.server.patch(`${CAPACITIES}/goes`, { metadata: { labels } }, 'merge')
    await fixture.anObject('by-hand', 'someone')
    const cleaner = await fixture.startCleaner({ drivers: 'all' })
    await fixture.server.patch(
      '/apis/storage.k8s.io/v1/csinodes/n1',
      { spec: { drivers: drivers.slice(0, 1) } },
      'merge',
    )
    await fixture.pass(GONE_FOR_MS - 1)
    expect(await fixture.names()).toEqual(['by-hand', 'goes', 'stays'])
    await fixture.pass(1)
    expect(await fixture.names()).toEqual(['by-hand', 'stays'])
    await cleaner.stop()
  })

  it.each(['n1', LONG])('CAP-9 reads %s from the server before it deletes', async (node) => {
    const fixture = await createCleanerFixture()
    await fixture.aNode(node, {})
    await fixture.anObject('of-it', managedBy(node))
    // A client whose watch shows no CSINodes.
    const blind = (client: Client): Client => ({
      ...client,
      async *watch(kind, request) {
        if (kind.kind !== 'CSINode') return yield* client.watch(kind, request)
        yield { type: 'bookmark', resourceVersion: '1', endsInitialEvents: true }
        await new Promise<void>((resolve) => request.signal.addEventListener('abort', () => resolve()))
      },
    })
    const cleaner = await fixture.startCleaner({ around: blind })
    await fixture.pass(2 * GONE_FOR_MS)
    expect(await fixture.names()).toEqual(['of-it'])
    await cleaner.stop()
  })
})
