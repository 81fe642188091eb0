import { describe, expect, it } from 'vitest'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { createCacheSet } from '../../runtime/index.ts'
import { aCapacity, CAPACITIES, createCapacityFixture, DRIVER } from './capacity.fixture.ts'
import { createCapacityCleaner } from './cleaner.ts'
import { managedBy } from './managed-by.ts'

const GONE_FOR_MS = 60_000
const LONG = `node-${'x'.repeat(60)}`

interface CleanerParts {
  /** Another client around the one to the trial server. */
  readonly around?: (client: Client) => Client
  readonly drivers?: readonly string[] | 'all'
}

async function aTrial() {
  const trial = await createCapacityFixture()
  const names = async () => (await trial.objects()).map(({ metadata }) => metadata.name)
  const anObject = (name: string, label: string) =>
    trial.server.post(CAPACITIES, aCapacity(name, 'fast', 'a', {}, label))
  async function start({ around = (client) => client, drivers = [DRIVER] }: CleanerParts = {}) {
    const common = { client: around(trial.client), clock: trial.server.clock, random: () => 0.5, log: silentLog }
    const caches = createCacheSet(common)
    const cleaner = createCapacityCleaner({
      ...common,
      caches,
      goneForMs: GONE_FOR_MS,
      ...(drivers === 'all' ? {} : { drivers }),
    })
    const abort = new AbortController()
    const over = cleaner.run(abort.signal)
    await trial.settle()
    return {
      queue: cleaner.queues[0]!,
      async stop() {
        abort.abort()
        await over
        await caches.stop()
      },
    }
  }
  return { ...trial, names, anObject, startCleaner: start }
}

describe('the cleaner', () => {
  it('CAP-9 deletes objects of deleted nodes and nodes without the driver after the set time', async () => {
    const trial = await aTrial()
    for (const node of ['n1', 'n2', LONG]) {
      await trial.aNode(node, {})
      await trial.anObject(`of-${node.slice(0, 6)}`, managedBy(node))
    }
    await trial.anObject('of-gone', managedBy('gone'))
    const cleaner = await trial.startCleaner()
    await trial.dropDriver('n2')
    await trial.dropDriver(LONG)
    await trial.pass(GONE_FOR_MS - 1)
    expect(await trial.names()).toHaveLength(4)
    expect(cleaner.queue.standing(`${DRIVER} ${managedBy('n2')}`)).toMatchObject({ is: 'waiting' })
    await trial.pass(1)
    expect(await trial.names()).toEqual(['of-n1'])
    await cleaner.stop()
  })

  it('CAP-9 keeps the objects of a driver that returns in time, and restarts its timer', async () => {
    const trial = await aTrial()
    await trial.aNode('n1', {})
    await trial.anObject('of-n1', managedBy('n1'))
    const cleaner = await trial.startCleaner()
    await trial.dropDriver('n1')
    await trial.pass(GONE_FOR_MS - 1_000)
    const drivers = [{ name: DRIVER, nodeID: 'n1' }]
    await trial.server.patch('/apis/storage.k8s.io/v1/csinodes/n1', { spec: { drivers } }, 'merge')
    await trial.settle()
    await trial.dropDriver('n1')
    await trial.pass(GONE_FOR_MS - 1_000)
    expect(await trial.names()).toEqual(['of-n1'])
    await trial.pass(1_000)
    expect(await trial.names()).toEqual([])
    await cleaner.stop()
  })

  it('CAP-9 restarts the timer when the cleaner restarts', async () => {
    const trial = await aTrial()
    await trial.anObject('of-gone', managedBy('gone'))
    const first = await trial.startCleaner()
    await trial.pass(GONE_FOR_MS - 1_000)
    await first.stop()
    const second = await trial.startCleaner()
    await trial.pass(GONE_FOR_MS - 1_000)
    expect(await trial.names()).toEqual(['of-gone'])
    await trial.pass(1_000)
    expect(await trial.names()).toEqual([])
    await second.stop()
  })

  it('CAP-9 leaves objects of a cluster-wide producer, of other drivers and manual ones alone', async () => {
    const trial = await aTrial()
    await trial.anObject('central', managedBy())
    await trial.anObject('by-hand', 'someone')
    await trial.anObject('other-driver', managedBy('gone'))
    const labels = { 'csi.storage.k8s.io/drivername': 'other.example' }
    await trial.server.patch(`${CAPACITIES}/other-driver`, { metadata: { labels } }, 'merge')
    const cleaner = await trial.startCleaner()
    await trial.pass(10 * GONE_FOR_MS)
    expect(await trial.names()).toEqual(['by-hand', 'central', 'other-driver'])
    await cleaner.stop()
  })

  it('CAP-9 handles every driver separately when none is named', async () => {
    const trial = await aTrial()
    await trial.aNode('n1', {})
    const other = 'other.example'
    const drivers = [DRIVER, other].map((name) => ({ name, nodeID: 'n1' }))
    await trial.server.patch('/apis/storage.k8s.io/v1/csinodes/n1', { spec: { drivers } }, 'merge')
    await trial.anObject('stays', managedBy('n1'))
    await trial.anObject('goes', managedBy('n1'))
    const labels = { 'csi.storage.k8s.io/drivername': other }
    await trial.server.patch(`${CAPACITIES}/goes`, { metadata: { labels } }, 'merge')
    await trial.anObject('by-hand', 'someone')
    const cleaner = await trial.startCleaner({ drivers: 'all' })
    await trial.server.patch('/apis/storage.k8s.io/v1/csinodes/n1', { spec: { drivers: drivers.slice(0, 1) } }, 'merge')
    await trial.pass(GONE_FOR_MS - 1)
    expect(await trial.names()).toEqual(['by-hand', 'goes', 'stays'])
    await trial.pass(1)
    expect(await trial.names()).toEqual(['by-hand', 'stays'])
    await cleaner.stop()
  })

  it.each(['n1', LONG])('CAP-9 reads %s from the server before it deletes', async (node) => {
    const trial = await aTrial()
    await trial.aNode(node, {})
    await trial.anObject('of-it', managedBy(node))
    // The CSINodes this cleaner sees are those from before any node registered.
    const blind = (client: Client): Client => ({
      ...client,
      async *watch(kind, request) {
        if (kind.kind !== 'CSINode') return yield* client.watch(kind, request)
        yield { type: 'bookmark', resourceVersion: '1', endsInitialEvents: true }
        await new Promise<void>((resolve) => request.signal.addEventListener('abort', () => resolve()))
      },
    })
    const cleaner = await trial.startCleaner({ around: blind })
    await trial.pass(2 * GONE_FOR_MS)
    expect(await trial.names()).toEqual(['of-it'])
    await cleaner.stop()
  })
})
