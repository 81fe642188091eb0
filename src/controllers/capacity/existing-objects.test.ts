// Tests how the capacity producer treats objects that exist when it starts and objects that other writers change.
import { describe, expect, it } from 'vitest'
import type { Client } from '../../client/index.ts'
import { aCapacity, CAPACITIES, createCapacityFixture, GI } from './capacity.fixture.ts'

async function createFixtureWithOneZone() {
  const fixture = await createCapacityFixture()
  await fixture.createNode('n1', { zone: 'a' })
  await fixture.createClass('fast')
  return fixture
}

describe('existing objects', () => {
  it('CAP-20 are not written again after a restart', async () => {
    const fixture = await createFixtureWithOneZone()
    const producer = await fixture.start()
    const previousObjects = await fixture.objects()
    await producer.stop()
    const callsBefore = fixture.countGetCapacityCalls()
    await fixture.start()
    expect(fixture.countGetCapacityCalls()).toBe(callsBefore + 1)
    expect(fixture.writes).toEqual(['create'])
    expect(await fixture.objects()).toEqual(previousObjects)
  })

  it('CAP-20 of an earlier external-provisioner are adopted unchanged', async () => {
    const fixture = await createFixtureWithOneZone()
    const existing = aCapacity('csisc-old', 'fast', 'a', { capacity: '10Gi', maximumVolumeSize: '10Gi' })
    const { json } = await fixture.server.post(CAPACITIES, existing)
    await fixture.start()
    expect(fixture.writes).toEqual([])
    expect((await fixture.objects()).map(({ metadata }) => metadata.uid)).toEqual([json.metadata.uid])
  })

  it('CAP-8 are deleted if they belong to no desired item or are newer duplicates', async () => {
    const fixture = await createFixtureWithOneZone()
    await fixture.server.post(CAPACITIES, aCapacity('csisc-1', 'fast', 'a', { capacity: '10Gi' }))
    await fixture.server.clock.advance(1_000)
    await fixture.server.post(CAPACITIES, aCapacity('csisc-0', 'fast', 'a', { capacity: '10Gi' }))
    await fixture.server.post(CAPACITIES, aCapacity('csisc-2', 'fast', 'z'))
    await fixture.server.post(CAPACITIES, aCapacity('csisc-3', 'gone', 'a'))
    await fixture.server.post(CAPACITIES, aCapacity('csisc-4', 'fast', 'a', { nodeTopology: undefined }))
    const matchExpressions = [{ key: 'zone', operator: 'Exists' }]
    await fixture.server.post(CAPACITIES, aCapacity('csisc-5', 'fast', 'a', { nodeTopology: { matchExpressions } }))
    await fixture.start()
    expect((await fixture.objects()).map(({ metadata }) => metadata.name)).toEqual(['csisc-1'])
    expect(await fixture.summary()).toEqual(['fast a 10Gi'])
  })

  it.each([
    ['another producer', { 'csi.storage.k8s.io/managed-by': 'external-provisioner-n9' }],
    ['no producer', { 'csi.storage.k8s.io/managed-by': null }],
    ['another driver', { 'csi.storage.k8s.io/drivername': 'other.example' }],
  ])('CAP-7 of %s are not changed, and the producer creates another object', async (_, labels) => {
    const fixture = await createFixtureWithOneZone()
    await fixture.server.post(CAPACITIES, aCapacity('foreign', 'fast', 'a'))
    await fixture.server.post(CAPACITIES, aCapacity('foreign-2', 'gone', 'a'))
    for (const name of ['foreign', 'foreign-2']) {
      await fixture.server.patch(`${CAPACITIES}/${name}`, { metadata: { labels } }, 'merge')
    }
    const previousVersions = (await fixture.objects()).map(({ metadata }) => metadata.resourceVersion)
    await fixture.start()
    await fixture.advance(60_000)
    const after = await fixture.objects()
    expect(after).toHaveLength(3)
    expect(
      after
        .filter(({ metadata }) => metadata.name?.startsWith('foreign'))
        .map(({ metadata }) => metadata.resourceVersion),
    ).toEqual(previousVersions)
  })
})

describe('objects that other writers change', () => {
  it('CAP-8 are recreated when deleted', async () => {
    const fixture = await createFixtureWithOneZone()
    await fixture.start()
    const [object] = await fixture.objects()
    await fixture.server.delete(`${CAPACITIES}/${object!.metadata.name}`)
    await fixture.settle()
    const [recreated, ...others] = await fixture.objects()
    expect(recreated!.metadata.uid).not.toBe(object!.metadata.uid)
    expect(recreated).toMatchObject({ capacity: '10Gi' })
    expect(others).toEqual([])
  })

  it('CAP-8 are adopted and corrected when recreated with a wrong size', async () => {
    const fixture = await createFixtureWithOneZone()
    const producer = await fixture.start()
    const [object] = await fixture.objects()
    await producer.stop()
    await fixture.server.delete(`${CAPACITIES}/${object!.metadata.name}`)
    await fixture.server.post(CAPACITIES, aCapacity('csisc-wrong', 'fast', 'a'))
    await fixture.start()
    expect((await fixture.objects()).map(({ metadata: { name }, capacity }) => [name, capacity])).toEqual([
      ['csisc-wrong', '10Gi'],
    ])
  })

  it('CAP-8 are corrected when their size is changed', async () => {
    const fixture = await createFixtureWithOneZone()
    await fixture.start()
    const [object] = await fixture.objects()
    await fixture.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { capacity: '77Gi' }, 'merge')
    await fixture.settle()
    expect(await fixture.summary()).toEqual(['fast a 10Gi'])
  })

  it('CAP-7 are kept and replaced by a new object when their labels are removed', async () => {
    const fixture = await createFixtureWithOneZone()
    await fixture.start()
    const [object] = await fixture.objects()
    const url = `${CAPACITIES}/${object!.metadata.name}`
    await fixture.server.patch(url, { metadata: { labels: null }, capacity: '5' }, 'merge')
    await fixture.settle()
    expect(await fixture.summary()).toEqual(['fast a 10Gi', 'fast a 5'])
    await fixture.deleteClass('fast')
    await fixture.settle()
    expect((await fixture.objects()).map(({ metadata }) => metadata.uid)).toEqual([object!.metadata.uid])
  })

  it('CAP-7 are not deleted when their labels are removed before the delete', async () => {
    const fixture = await createFixtureWithOneZone()
    let removeLabels: (() => Promise<unknown>) | undefined
    const wrapClient = (client: Client): Client => ({
      ...client,
      delete: async (...args) => {
        await removeLabels?.()
        return client.delete(...args)
      },
    })
    await fixture.start({ wrapClient })
    const [object] = await fixture.objects()
    removeLabels = () =>
      fixture.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { metadata: { labels: null } }, 'merge')
    await fixture.deleteClass('fast')
    await fixture.settle()
    expect(await fixture.summary()).toEqual(['fast a 10Gi'])
  })

  it('CAP-7 are not updated when their labels are removed before the update', async () => {
    const fixture = await createFixtureWithOneZone()
    let removeLabels: (() => Promise<unknown>) | undefined
    const wrapClient = (client: Client): Client => ({
      ...client,
      patch: async (...args) => {
        await removeLabels?.()
        return client.patch(...args)
      },
    })
    await fixture.start({ wrapClient })
    const [object] = await fixture.objects()
    removeLabels = () =>
      fixture.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { metadata: { labels: null } }, 'merge')
    await fixture.createVolume('v', GI, 'a')
    await fixture.advance(100)
    expect(await fixture.summary()).toEqual(['fast a 10Gi', 'fast a 9Gi'])
  })

  it('CAP-8 are not created twice by two reconciles before the watch event arrives', async () => {
    const fixture = await createFixtureWithOneZone()
    let release = () => {}
    const eventsReleased = new Promise<void>((resolve) => {
      release = resolve
    })
    const wrapClient = (client: Client): Client => ({
      ...client,
      async *watch(kind, request) {
        for await (const event of client.watch(kind, request)) {
          if (kind.kind === 'CSIStorageCapacity' && event.type === 'added') await eventsReleased
          yield event
        }
      },
    })
    const { queue } = await fixture.start({ wrapClient })
    queue.add('fast [["zone","a"]]')
    await fixture.settle()
    expect(fixture.countGetCapacityCalls()).toBe(2)
    expect(fixture.writes).toEqual(['create'])
    release()
    await fixture.advance(60_000)
    expect(fixture.writes).toEqual(['create'])
  })
})
