import { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { createCapacityFixture, DRIVER, GI } from './capacity.fixture.ts'
import { createCapacityMetrics } from './metrics.ts'

const OWNED = { 'csi.storage.k8s.io/drivername': DRIVER }

async function twoZones() {
  const trial = await createCapacityFixture()
  await trial.aNode('n1', { zone: 'a' })
  await trial.aNode('n2', { zone: 'b' })
  return trial
}

describe('published objects', () => {
  it('CAP-4 publishes nothing without a class or without a node', async () => {
    const trial = await createCapacityFixture()
    await trial.start()
    await trial.aClass('fast')
    await trial.settle()
    expect(await trial.summary()).toEqual([])
    await trial.deleteClass('fast')
    await trial.aNode('n1', { zone: 'a' })
    await trial.settle()
    expect(await trial.summary()).toEqual([])
    expect(trial.asked()).toBe(0)
  })

  it('CAP-4 publishes one object per segment and class', async () => {
    const trial = await twoZones()
    await trial.aNode('n3', { zone: 'b', rack: '7' })
    await trial.aClass('striped')
    await trial.aClass('mirrored', { copies: '2' })
    await trial.start()
    expect(await trial.summary()).toEqual(['mirrored a 5Gi', 'mirrored b 2Gi', 'striped a 10Gi', 'striped b 4Gi'])
    expect(trial.writes).toEqual(['create', 'create', 'create', 'create'])
  })

  it('CAP-7 sets both labels, a generated name, the maximum volume size and the labels of the segment', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.start()
    const object = (await trial.objects()).find(({ nodeTopology }) => nodeTopology?.matchLabels?.zone === 'a')!
    expect(object.metadata.name).toMatch(/^csisc-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    expect(object.metadata.labels).toEqual({ ...OWNED, 'csi.storage.k8s.io/managed-by': 'external-provisioner' })
    expect(object.metadata.ownerReferences).toBeUndefined()
    expect(object).toMatchObject({ nodeTopology: { matchLabels: { zone: 'a' } }, maximumVolumeSize: '10Gi' })
  })

  it('CAP-6 calls GetCapacity with all parameters and the segment, without capabilities', async () => {
    const trial = await twoZones()
    const parameters = { copies: '2', 'csi.storage.k8s.io/fstype': 'xfs' }
    await trial.aClass('fast', parameters)
    await trial.start()
    const requests = trial.fake.record.calls.filter(({ method }) => method === 'GetCapacity')
    expect(requests.map(({ request }) => request)).toEqual([
      { parameters, accessibleTopology: { segments: { zone: 'a' } } },
      { parameters, accessibleTopology: { segments: { zone: 'b' } } },
    ])
  })

  it('CAP-4 publishes one object for all nodes for a driver without topology', async () => {
    const trial = await createCapacityFixture({ pools: [{ name: 'p', capacityBytes: 7 * GI }] })
    await trial.aNode('n1', {}, [])
    await trial.aNode('n2', {}, [])
    await trial.aClass('fast')
    await trial.start()
    expect((await trial.objects()).map(({ nodeTopology, capacity }) => ({ nodeTopology, capacity }))).toEqual([
      { nodeTopology: {}, capacity: '7Gi' },
    ])
  })

  it('CAP-4 skips classes with immediate binding unless the option is set', async () => {
    const trial = await twoZones()
    await trial.aClass('at-once', {}, { volumeBindingMode: 'Immediate' })
    await trial.aClass('delayed')
    const first = await trial.start()
    expect(await trial.summary()).toEqual(['delayed a 10Gi', 'delayed b 4Gi'])
    await first.stop()
    await trial.start({ options: { immediateBinding: true } })
    expect(await trial.summary()).toHaveLength(4)
  })

  it('CAP-5 publishes only its own node, with its own label, as a per-node producer', async () => {
    const trial = await createCapacityFixture()
    await trial.aClass('fast')
    await trial.start({ mode: { is: 'local', node: 'n1' } })
    const objects = await trial.objects()
    expect(await trial.summary()).toEqual(['fast a 10Gi'])
    expect(objects[0]!.metadata.labels).toMatchObject({ 'csi.storage.k8s.io/managed-by': 'external-provisioner-n1' })
  })

  it('CAP-6 publishes no object without capacity, and zero for an existing object', async () => {
    const trial = await twoZones()
    await trial.aClass('only-a', { pool: 'a' })
    await trial.start()
    expect(await trial.summary()).toEqual(['only-a a 10Gi'])
    await trial.aVolume('big', 10 * GI, 'a')
    await trial.pass(100)
    expect(await trial.summary()).toEqual(['only-a a 0'])
  })

  it('CAP-10 rejects a driver without GET_CAPACITY and explains what to do', async () => {
    const trial = await createCapacityFixture({ settings: { controller: ['CREATE_DELETE_VOLUME'] } })
    await expect(trial.start()).rejects.toThrow(
      /does not report the controller capability GET_CAPACITY. Run it without/,
    )
  })

  it('CAP-10 counts goal, current and obsolete objects per driver, and per node for a per-node producer', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.aClass('only-a', { pool: 'a' })
    const registry = new Registry()
    const metrics = createCapacityMetrics(registry)
    const values = async () =>
      (await registry.metrics())
        .split('\n')
        .filter((line) => line.startsWith('csi'))
        .map((line) => line.replace(/csistoragecapacities_/, '').replace(`driver_name="${DRIVER}"`, ''))
    const central = await trial.start({ metrics })
    // only-a in b has no room and no object, which is as it should be.
    expect(await values()).toEqual(['desired_goal{} 3', 'desired_current{} 3', 'obsolete{} 0'])
    await central.stop()
    expect(await values()).toEqual([])
    await trial.start({ metrics, mode: { is: 'local', node: 'n1' } })
    expect(await values()).toEqual([
      'desired_goal{,node="n1"} 2',
      'desired_current{,node="n1"} 2',
      'obsolete{,node="n1"} 0',
    ])
  })
})

describe('changes', () => {
  it('CAP-8 creates and deletes objects with classes and segments', async () => {
    const trial = await twoZones()
    await trial.start()
    await trial.aClass('fast')
    await trial.settle()
    expect(await trial.summary()).toEqual(['fast a 10Gi', 'fast b 4Gi'])
    await trial.dropDriver('n2')
    await trial.settle()
    expect(await trial.summary()).toEqual(['fast a 10Gi'])
    await trial.deleteClass('fast')
    await trial.settle()
    expect(await trial.summary()).toEqual([])
  })

  it('CAP-8 keeps a segment while one of its nodes exists', async () => {
    const trial = await createCapacityFixture()
    await trial.aNode('n1', { zone: 'a' })
    await trial.aNode('n2', { zone: 'a' })
    await trial.aClass('fast')
    await trial.start()
    const [before] = await trial.objects()
    await trial.server.delete('/api/v1/nodes/n1')
    await trial.settle()
    expect(await trial.objects()).toEqual([before])
    await trial.server.delete('/api/v1/nodes/n2')
    await trial.settle()
    expect(await trial.objects()).toEqual([])
  })

  it('CAP-8 polls without writing when nothing changed', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.start()
    const before = await trial.objects()
    const asked = trial.asked()
    await trial.pass(60_000)
    expect(trial.asked()).toBe(asked + 2)
    expect(trial.writes).toEqual(['create', 'create'])
    expect(await trial.objects()).toEqual(before)
  })

  it('CAP-8 updates the same object once when a poll finds a change', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.start()
    const uids = (await trial.objects()).map(({ metadata }) => metadata.uid)
    trial.fake.state.frozenUsedBytes = { a: 1 * GI, b: 0 }
    await trial.pass(60_000)
    expect(await trial.summary()).toEqual(['fast a 9Gi', 'fast b 4Gi'])
    expect((await trial.objects()).map(({ metadata }) => metadata.uid)).toEqual(uids)
    expect(trial.writes).toEqual(['create', 'create', 'patch'])
  })

  it('CAP-8 SYS-16 calls and writes once per affected object for a batch of volumes', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.aClass('mirrored', { copies: '2' })
    await trial.start()
    const asked = trial.asked()
    trial.writes.length = 0
    for (let i = 0; i < 20; i++) {
      await trial.aVolume(`v${i}`, GI / 4, 'a')
      await trial.pass(20)
    }
    await trial.pass(100)
    expect(await trial.summary()).toEqual(['fast a 5Gi', 'fast b 4Gi', 'mirrored a 2560Mi', 'mirrored b 2Gi'])
    expect(trial.writes).toEqual(['patch', 'patch'])
    expect(trial.asked()).toBe(asked + 2)
  })

  it('CAP-8 ignores volumes that existed before the start', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.aVolume('v', GI, 'a')
    await trial.start()
    await trial.pass(2_000)
    expect(trial.asked()).toBe(2)
    expect(await trial.summary()).toEqual(['fast a 9Gi', 'fast b 4Gi'])
  })

  it('CAP-8 writes every second during uninterrupted changes', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.start()
    trial.writes.length = 0
    for (let i = 0; i < 40; i++) {
      await trial.aVolume(`v${i}`, GI / 8, 'a')
      await trial.pass(50)
    }
    expect(trial.writes).toEqual(['patch', 'patch'])
  })

  it('CAP-8 publishes the capacity freed by a deleted volume', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.start()
    await trial.aVolume('v', GI, 'b')
    await trial.pass(100)
    expect(await trial.summary()).toEqual(['fast a 10Gi', 'fast b 3Gi'])
    await trial.removeVolume('v')
    await trial.pass(100)
    expect(await trial.summary()).toEqual(['fast a 10Gi', 'fast b 4Gi'])
  })

  it('CAP-8 refreshes the class in all segments for a volume without affinity', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.aClass('other')
    await trial.start()
    const asked = trial.asked()
    await trial.aVolume('v', GI)
    await trial.pass(100)
    expect(trial.asked()).toBe(asked + 2)
    expect(await trial.summary()).toEqual(['fast a 9Gi', 'fast b 4Gi', 'other a 10Gi', 'other b 4Gi'])
  })

  it.each([
    ['expanded', { capacity: { storage: String(2 * GI) } }],
    ['modified', { volumeAttributesClassName: 'gold' }],
  ])('CAP-8 refreshes the segment of a volume that is %s, but not for a label', async (_, spec) => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.start()
    await trial.aVolume('v', GI, 'a')
    await trial.pass(100)
    const asked = trial.asked()
    await trial.server.patch('/api/v1/persistentvolumes/v', { metadata: { labels: { a: 'b' } } }, 'merge')
    await trial.pass(100)
    expect(trial.asked()).toBe(asked)
    const { status } = await trial.server.patch('/api/v1/persistentvolumes/v', { spec }, 'merge')
    expect(status).toBe(200)
    await trial.pass(100)
    expect(trial.asked()).toBe(asked + 1)
  })

  it('CAP-8 refreshes the segment when a claim is expanded or its selected node is cleared', async () => {
    const trial = await twoZones()
    await trial.aClass('fast')
    await trial.start()
    await trial.aVolume('v', GI, 'a')
    const claims = '/api/v1/namespaces/default/persistentvolumeclaims'
    const spec = {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'fast',
    }
    await trial.server.post(claims, { metadata: { name: 'bound' }, spec: { ...spec, volumeName: 'v' } })
    const annotations = { 'volume.kubernetes.io/selected-node': 'n2' }
    await trial.server.post(claims, { metadata: { name: 'waiting', annotations }, spec })
    await trial.pass(100)
    const askedIn = (zone: string) =>
      trial.fake.record.calls.filter(({ method, request }) => {
        const { accessibleTopology } = request as { accessibleTopology?: { segments: Record<string, string> } }
        return method === 'GetCapacity' && accessibleTopology?.segments.zone === zone
      }).length
    const before = [askedIn('a'), askedIn('b')]
    await trial.server.patch(
      `${claims}/bound/status`,
      { status: { phase: 'Bound', capacity: { storage: '2Gi' } } },
      'merge',
    )
    await trial.pass(100)
    expect([askedIn('a'), askedIn('b')]).toEqual([before[0]! + 1, before[1]])
    const taken = { metadata: { annotations: { 'volume.kubernetes.io/selected-node': null } } }
    await trial.server.patch(`${claims}/waiting`, taken, 'merge')
    await trial.pass(100)
    expect([askedIn('a'), askedIn('b')]).toEqual([before[0]! + 1, before[1]! + 1])
  })
})
