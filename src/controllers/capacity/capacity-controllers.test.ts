import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { createCapacityFixture, DRIVER, GI } from './capacity.fixture.ts'
import { createCapacityMetrics } from './metrics.ts'

const DRIVER_LABEL = { 'csi.storage.k8s.io/drivername': DRIVER }

async function createFixtureWithTwoZones() {
  const fixture = await createCapacityFixture()
  await fixture.createNode('n1', { zone: 'a' })
  await fixture.createNode('n2', { zone: 'b' })
  return fixture
}

describe('the capacity producer', () => {
  it('CAP-4 publishes nothing without a class or without a node', async () => {
    const fixture = await createCapacityFixture()
    await fixture.start()
    await fixture.createClass('fast')
    await fixture.settle()
    expect(await fixture.summary()).toEqual([])
    await fixture.deleteClass('fast')
    await fixture.createNode('n1', { zone: 'a' })
    await fixture.settle()
    expect(await fixture.summary()).toEqual([])
    expect(fixture.countGetCapacityCalls()).toBe(0)
  })

  it('CAP-4 publishes one object per segment and class', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createNode('n3', { zone: 'b', rack: '7' })
    await fixture.createClass('striped')
    await fixture.createClass('mirrored', { copies: '2' })
    await fixture.start()
    expect(await fixture.summary()).toEqual(['mirrored a 5Gi', 'mirrored b 2Gi', 'striped a 10Gi', 'striped b 4Gi'])
    expect(fixture.writes).toEqual(['create', 'create', 'create', 'create'])
  })

  it('CAP-7 sets both labels, a generated name, the maximum volume size and the labels of the segment', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.start()
    const object = (await fixture.objects()).find(({ nodeTopology }) => nodeTopology?.matchLabels?.zone === 'a')!
    expect(object.metadata.name).toMatch(/^csisc-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    expect(object.metadata.labels).toEqual({ ...DRIVER_LABEL, 'csi.storage.k8s.io/managed-by': 'external-provisioner' })
    expect(object.metadata.ownerReferences).toBeUndefined()
    expect(object).toMatchObject({ nodeTopology: { matchLabels: { zone: 'a' } }, maximumVolumeSize: '10Gi' })
  })

  it('CAP-6 calls GetCapacity with all parameters and the segment, without capabilities', async () => {
    const fixture = await createFixtureWithTwoZones()
    const parameters = { copies: '2', 'csi.storage.k8s.io/fstype': 'xfs' }
    await fixture.createClass('fast', parameters)
    await fixture.start()
    const requests = fixture.fake.record.calls.filter(({ method }) => method === 'GetCapacity')
    expect(requests.map(({ request }) => request)).toEqual([
      { parameters, accessibleTopology: { segments: { zone: 'a' } } },
      { parameters, accessibleTopology: { segments: { zone: 'b' } } },
    ])
  })

  it('CAP-4 publishes a single object for all nodes if the driver has no topology', async () => {
    const fixture = await createCapacityFixture({ pools: [{ name: 'p', capacityBytes: 7 * GI }] })
    await fixture.createNode('n1', {}, [])
    await fixture.createNode('n2', {}, [])
    await fixture.createClass('fast')
    await fixture.start()
    expect((await fixture.objects()).map(({ nodeTopology, capacity }) => ({ nodeTopology, capacity }))).toEqual([
      { nodeTopology: {}, capacity: '7Gi' },
    ])
  })

  it('CAP-4 skips classes with immediate binding unless the option is set', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('at-once', {}, { volumeBindingMode: 'Immediate' })
    await fixture.createClass('delayed')
    const firstProducer = await fixture.start()
    expect(await fixture.summary()).toEqual(['delayed a 10Gi', 'delayed b 4Gi'])
    await firstProducer.stop()
    await fixture.start({ options: { immediateBinding: true } })
    expect(await fixture.summary()).toHaveLength(4)
  })

  it('CAP-5 publishes only the capacity of its node, with its own label, as a per-node producer', async () => {
    const fixture = await createCapacityFixture()
    await fixture.createClass('fast')
    await fixture.start({ mode: { is: 'local', node: 'n1' } })
    const objects = await fixture.objects()
    expect(await fixture.summary()).toEqual(['fast a 10Gi'])
    expect(objects[0]!.metadata.labels).toMatchObject({ 'csi.storage.k8s.io/managed-by': 'external-provisioner-n1' })
  })

  it('CAP-6 creates no object without capacity, but updates an existing object to zero', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('only-a', { pool: 'a' })
    await fixture.start()
    expect(await fixture.summary()).toEqual(['only-a a 10Gi'])
    await fixture.createVolume('big', 10 * GI, 'a')
    await fixture.advance(100)
    expect(await fixture.summary()).toEqual(['only-a a 0'])
  })

  it('rejects a driver without GET_CAPACITY, with a message that explains how to disable capacity', async () => {
    const fixture = await createCapacityFixture({ settings: { controller: ['CREATE_DELETE_VOLUME'] } })
    await expect(fixture.start()).rejects.toThrow(
      /does not report the controller capability GET_CAPACITY. Run its provisioner without/,
    )
  })

  it('CAP-10 counts goal, current and obsolete objects per driver, and per node for a per-node producer', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.createClass('only-a', { pool: 'a' })
    const registry = new Registry()
    const metrics = createCapacityMetrics(registry)
    const readValues = async () =>
      (await registry.metrics())
        .split('\n')
        .filter((line) => line.startsWith('csi'))
        .map((line) => line.replace(/csistoragecapacities_/, '').replace(`driver_name="${DRIVER}"`, ''))
    const central = await fixture.start({ metrics })
    // only-a in zone b has no capacity, so no object should exist for it.
    expect(await readValues()).toEqual(['desired_goal{} 3', 'desired_current{} 3', 'obsolete{} 0'])
    await central.stop()
    expect(await readValues()).toEqual([])
    await fixture.start({ metrics, mode: { is: 'local', node: 'n1' } })
    expect(await readValues()).toEqual([
      'desired_goal{,node="n1"} 2',
      'desired_current{,node="n1"} 2',
      'obsolete{,node="n1"} 0',
    ])
  })
})

describe('the capacity producer, on changes', () => {
  it('CAP-8 creates and deletes objects when classes and segments are created and deleted', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.start()
    await fixture.createClass('fast')
    await fixture.settle()
    expect(await fixture.summary()).toEqual(['fast a 10Gi', 'fast b 4Gi'])
    await fixture.removeDriver('n2')
    await fixture.settle()
    expect(await fixture.summary()).toEqual(['fast a 10Gi'])
    await fixture.deleteClass('fast')
    await fixture.settle()
    expect(await fixture.summary()).toEqual([])
  })

  it('CAP-8 keeps a segment while one of its nodes exists', async () => {
    const fixture = await createCapacityFixture()
    await fixture.createNode('n1', { zone: 'a' })
    await fixture.createNode('n2', { zone: 'a' })
    await fixture.createClass('fast')
    await fixture.start()
    const [previousObject] = await fixture.objects()
    await fixture.server.delete('/api/v1/nodes/n1')
    await fixture.settle()
    expect(await fixture.objects()).toEqual([previousObject])
    await fixture.server.delete('/api/v1/nodes/n2')
    await fixture.settle()
    expect(await fixture.objects()).toEqual([])
  })

  it('CAP-8 polls without writing when nothing changed', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.start()
    const previousObjects = await fixture.objects()
    const callsBefore = fixture.countGetCapacityCalls()
    await fixture.advance(60_000)
    expect(fixture.countGetCapacityCalls()).toBe(callsBefore + 2)
    expect(fixture.writes).toEqual(['create', 'create'])
    expect(await fixture.objects()).toEqual(previousObjects)
  })

  it('CAP-8 updates the same object once when a poll finds a change', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.start()
    const uids = (await fixture.objects()).map(({ metadata }) => metadata.uid)
    fixture.fake.state.frozenUsedBytes = { a: 1 * GI, b: 0 }
    await fixture.advance(60_000)
    expect(await fixture.summary()).toEqual(['fast a 9Gi', 'fast b 4Gi'])
    expect((await fixture.objects()).map(({ metadata }) => metadata.uid)).toEqual(uids)
    expect(fixture.writes).toEqual(['create', 'create', 'patch'])
  })

  it('CAP-8 calls GetCapacity and writes once per affected object for a batch of volumes', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.createClass('mirrored', { copies: '2' })
    await fixture.start()
    const callsBefore = fixture.countGetCapacityCalls()
    fixture.writes.length = 0
    for (let i = 0; i < 20; i++) {
      await fixture.createVolume(`v${i}`, GI / 4, 'a')
      await fixture.advance(20)
    }
    await fixture.advance(100)
    expect(await fixture.summary()).toEqual(['fast a 5Gi', 'fast b 4Gi', 'mirrored a 2560Mi', 'mirrored b 2Gi'])
    expect(fixture.writes).toEqual(['patch', 'patch'])
    expect(fixture.countGetCapacityCalls()).toBe(callsBefore + 2)
  })

  it('CAP-8 makes no further call for a volume that existed before the start', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.createVolume('v', GI, 'a')
    await fixture.start()
    await fixture.advance(2_000)
    expect(fixture.countGetCapacityCalls()).toBe(2)
    expect(await fixture.summary()).toEqual(['fast a 9Gi', 'fast b 4Gi'])
  })

  it('CAP-8 writes every second during continuous changes', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.start()
    fixture.writes.length = 0
    for (let i = 0; i < 40; i++) {
      await fixture.createVolume(`v${i}`, GI / 8, 'a')
      await fixture.advance(50)
    }
    expect(fixture.writes).toEqual(['patch', 'patch'])
  })

  it('CAP-8 publishes the capacity freed by a deleted volume', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.start()
    await fixture.createVolume('v', GI, 'b')
    await fixture.advance(100)
    expect(await fixture.summary()).toEqual(['fast a 10Gi', 'fast b 3Gi'])
    await fixture.deleteVolume('v')
    await fixture.advance(100)
    expect(await fixture.summary()).toEqual(['fast a 10Gi', 'fast b 4Gi'])
  })

  it('CAP-8 refreshes the class in all segments for a volume without affinity', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.createClass('other')
    await fixture.start()
    const callsBefore = fixture.countGetCapacityCalls()
    await fixture.createVolume('v', GI)
    await fixture.advance(100)
    expect(fixture.countGetCapacityCalls()).toBe(callsBefore + 2)
    expect(await fixture.summary()).toEqual(['fast a 9Gi', 'fast b 4Gi', 'other a 10Gi', 'other b 4Gi'])
  })

  it.each([
    ['expanded', { capacity: { storage: String(2 * GI) } }],
    ['modified', { volumeAttributesClassName: 'gold' }],
  ])('CAP-8 refreshes the segment of a volume that is %s, but not of one whose labels change', async (_, spec) => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.start()
    await fixture.createVolume('v', GI, 'a')
    await fixture.advance(100)
    const callsBefore = fixture.countGetCapacityCalls()
    await fixture.server.patch('/api/v1/persistentvolumes/v', { metadata: { labels: { a: 'b' } } }, 'merge')
    await fixture.advance(100)
    expect(fixture.countGetCapacityCalls()).toBe(callsBefore)
    const { status } = await fixture.server.patch('/api/v1/persistentvolumes/v', { spec }, 'merge')
    expect(status).toBe(200)
    await fixture.advance(100)
    expect(fixture.countGetCapacityCalls()).toBe(callsBefore + 1)
  })

  it('CAP-8 refreshes the segment when a claim is expanded or its selected node is cleared', async () => {
    const fixture = await createFixtureWithTwoZones()
    await fixture.createClass('fast')
    await fixture.start()
    await fixture.createVolume('v', GI, 'a')
    const claims = '/api/v1/namespaces/default/persistentvolumeclaims'
    const spec = {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'fast',
    }
    await fixture.server.post(claims, { metadata: { name: 'bound' }, spec: { ...spec, volumeName: 'v' } })
    const annotations = { 'volume.kubernetes.io/selected-node': 'n2' }
    await fixture.server.post(claims, { metadata: { name: 'waiting', annotations }, spec })
    await fixture.advance(100)
    const countCallsIn = (zone: string) =>
      fixture.fake.record.calls.filter(({ method, request }) => {
        const { accessibleTopology } = request as { accessibleTopology?: { segments: Record<string, string> } }
        return method === 'GetCapacity' && accessibleTopology?.segments.zone === zone
      }).length
    const previousCounts = [countCallsIn('a'), countCallsIn('b')]
    await fixture.server.patch(
      `${claims}/bound/status`,
      { status: { phase: 'Bound', capacity: { storage: '2Gi' } } },
      'merge',
    )
    await fixture.advance(100)
    expect([countCallsIn('a'), countCallsIn('b')]).toEqual([previousCounts[0]! + 1, previousCounts[1]])
    const nodeRemoval = { metadata: { annotations: { 'volume.kubernetes.io/selected-node': null } } }
    await fixture.server.patch(`${claims}/waiting`, nodeRemoval, 'merge')
    await fixture.advance(100)
    expect([countCallsIn('a'), countCallsIn('b')]).toEqual([previousCounts[0]! + 1, previousCounts[1]! + 1])
  })
})
