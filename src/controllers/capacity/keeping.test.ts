import { describe, expect, it } from 'vitest'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { aCapacity, CAPACITIES, createCapacityFixture, GI } from './capacity.fixture.ts'
import { findOwner } from './owner.ts'

async function oneZone() {
  const fixture = await createCapacityFixture()
  await fixture.aNode('n1', { zone: 'a' })
  await fixture.aClass('fast')
  return fixture
}

const PODS = '/api/v1/namespaces/kube-system/pods'
const aPod = (name: string, ownerReferences: OwnerReference[] = []) => ({
  metadata: { name, ownerReferences },
  spec: { containers: [{ name: 'c', image: 'i' }] },
})

describe('existing objects', () => {
  it('CAP-20 are not written by a restart', async () => {
    const fixture = await oneZone()
    const first = await fixture.start()
    const before = await fixture.objects()
    await first.stop()
    const callsBefore = fixture.getCapacityCalls()
    await fixture.start()
    expect(fixture.getCapacityCalls()).toBe(callsBefore + 1)
    expect(fixture.writes).toEqual(['create'])
    expect(await fixture.objects()).toEqual(before)
  })

  it('CAP-20 of an earlier external-provisioner are adopted unchanged', async () => {
    const fixture = await oneZone()
    const found = aCapacity('csisc-old', 'fast', 'a', { capacity: '10Gi', maximumVolumeSize: '10Gi' })
    const { json } = await fixture.server.post(CAPACITIES, found)
    await fixture.start()
    expect(fixture.writes).toEqual([])
    expect((await fixture.objects()).map(({ metadata }) => metadata.uid)).toEqual([json.metadata.uid])
  })

  it('CAP-8 of another segment or class, of no segment, and all but the oldest duplicate are deleted', async () => {
    const fixture = await oneZone()
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
  ])('CAP-7 of %s are left alone, and our own is created beside them', async (_, labels) => {
    const fixture = await oneZone()
    await fixture.server.post(CAPACITIES, aCapacity('theirs', 'fast', 'a'))
    await fixture.server.post(CAPACITIES, aCapacity('theirs-too', 'gone', 'a'))
    for (const name of ['theirs', 'theirs-too']) {
      await fixture.server.patch(`${CAPACITIES}/${name}`, { metadata: { labels } }, 'merge')
    }
    const before = (await fixture.objects()).map(({ metadata }) => metadata.resourceVersion)
    await fixture.start()
    await fixture.pass(60_000)
    const after = await fixture.objects()
    expect(after).toHaveLength(3)
    expect(
      after
        .filter(({ metadata }) => metadata.name?.startsWith('theirs'))
        .map(({ metadata }) => metadata.resourceVersion),
    ).toEqual(before)
  })
})

describe('objects that other writers change', () => {
  it('CAP-8 are recreated when deleted', async () => {
    const fixture = await oneZone()
    await fixture.start()
    const [object] = await fixture.objects()
    await fixture.server.delete(`${CAPACITIES}/${object!.metadata.name}`)
    await fixture.settle()
    const [again, ...more] = await fixture.objects()
    expect(again!.metadata.uid).not.toBe(object!.metadata.uid)
    expect(again).toMatchObject({ capacity: '10Gi' })
    expect(more).toEqual([])
  })

  it('CAP-8 are adopted and corrected when recreated with a wrong size', async () => {
    const fixture = await oneZone()
    const first = await fixture.start()
    const [object] = await fixture.objects()
    await first.stop()
    await fixture.server.delete(`${CAPACITIES}/${object!.metadata.name}`)
    await fixture.server.post(CAPACITIES, aCapacity('csisc-wrong', 'fast', 'a'))
    await fixture.start()
    expect((await fixture.objects()).map(({ metadata: { name }, capacity }) => [name, capacity])).toEqual([
      ['csisc-wrong', '10Gi'],
    ])
  })

  it('CAP-8 are corrected when their size is changed', async () => {
    const fixture = await oneZone()
    await fixture.start()
    const [object] = await fixture.objects()
    await fixture.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { capacity: '77Gi' }, 'merge')
    await fixture.settle()
    expect(await fixture.summary()).toEqual(['fast a 10Gi'])
  })

  it('CAP-7 are left alone and replaced when their labels are removed', async () => {
    const fixture = await oneZone()
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
    const fixture = await oneZone()
    let strip: (() => Promise<unknown>) | undefined
    const around = (client: Client): Client => ({
      ...client,
      delete: async (...args) => {
        await strip?.()
        return client.delete(...args)
      },
    })
    await fixture.start({ around })
    const [object] = await fixture.objects()
    strip = () =>
      fixture.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { metadata: { labels: null } }, 'merge')
    await fixture.deleteClass('fast')
    await fixture.settle()
    expect(await fixture.summary()).toEqual(['fast a 10Gi'])
  })

  it('CAP-7 are not updated when their labels are removed before the update', async () => {
    const fixture = await oneZone()
    let strip: (() => Promise<unknown>) | undefined
    const around = (client: Client): Client => ({
      ...client,
      patch: async (...args) => {
        await strip?.()
        return client.patch(...args)
      },
    })
    await fixture.start({ around })
    const [object] = await fixture.objects()
    strip = () =>
      fixture.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { metadata: { labels: null } }, 'merge')
    await fixture.aVolume('v', GI, 'a')
    await fixture.pass(100)
    expect(await fixture.summary()).toEqual(['fast a 10Gi', 'fast a 9Gi'])
  })

  it('CAP-8 are created once by two reconciles before the watch event', async () => {
    const fixture = await oneZone()
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const around = (client: Client): Client => ({
      ...client,
      async *watch(kind, request) {
        for await (const event of client.watch(kind, request)) {
          if (kind.kind === 'CSIStorageCapacity' && event.type === 'added') await held
          yield event
        }
      },
    })
    const { queue } = await fixture.start({ around })
    queue.add('fast [["zone","a"]]')
    await fixture.settle()
    expect(fixture.getCapacityCalls()).toBe(2)
    expect(fixture.writes).toEqual(['create'])
    release()
    await fixture.pass(60_000)
    expect(fixture.writes).toEqual(['create'])
  })
})

describe('the owner of objects', () => {
  it('CAP-7 is added when configured later, and kept when no longer configured', async () => {
    const fixture = await oneZone()
    const first = await fixture.start()
    await first.stop()
    const { json: pod } = await fixture.server.post(PODS, aPod('producer'))
    const owned = await fixture.start({ options: { owner: { podName: 'producer', level: 0 } } })
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'producer', uid: pod.metadata.uid, controller: true }
    expect((await fixture.objects()).map(({ metadata }) => metadata.ownerReferences)).toEqual([[owner]])
    await owned.stop()
    await fixture.start()
    expect((await fixture.objects()).map(({ metadata }) => metadata.ownerReferences)).toEqual([[owner]])
    expect(fixture.writes).toEqual(['create', 'patch'])
  })

  it('CAP-20 of an upgraded pod is added, and the previous owner stays the controller', async () => {
    const fixture = await oneZone()
    await fixture.server.post(PODS, aPod('old'))
    await fixture.server.post(PODS, aPod('new'))
    const first = await fixture.start({ options: { owner: { podName: 'old', level: 0 } } })
    await first.stop()
    await fixture.start({ options: { owner: { podName: 'new', level: 0 } } })
    const [object] = await fixture.objects()
    expect(object!.metadata.ownerReferences?.map(({ name, controller }) => [name, controller])).toEqual([
      ['old', true],
      ['new', undefined],
    ])
    expect(fixture.writes).toEqual(['create', 'patch'])
  })

  const daemonSet = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'ds', uid: 'ds-uid', controller: true }
  const replicaSet = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs', uid: 'rs-uid', controller: true }
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', uid: 'd-uid', controller: true }
  const stranger = { apiVersion: 'v1', kind: 'ConfigMap', name: 'cm', uid: 'cm-uid' }

  /** A client that can read only these objects. */
  const cluster = (...there: [plural: string, name: string, owners: OwnerReference[]][]) =>
    ({
      async get(kind: { plural: string }, { name }: { name: string }) {
        const found = there.find(([plural, one]) => plural === kind.plural && one === name)
        if (!found) throw new ApiError(404, 'NotFound', `${kind.plural} "${name}" not found`)
        return { metadata: { name, uid: `${name}-uid`, ownerReferences: found[2] } }
      },
    }) as unknown as Client
  const search = (level: number) => ({ namespace: 'kube-system', podName: 'p', level })

  it.each([
    [0, 'Pod', cluster(['pods', 'p', [daemonSet]])],
    [1, 'DaemonSet', cluster(['pods', 'p', [stranger, daemonSet]])],
    [2, 'Deployment', cluster(['pods', 'p', [replicaSet]], ['replicasets', 'rs', [deployment]])],
  ])('CAP-7 at level %i is the %s, without unneeded reads', async (level, kind, client) => {
    expect(await findOwner(client, search(level))).toMatchObject({ kind, controller: true })
  })

  it('CAP-7 at a missing level is rejected with the highest existing level', async () => {
    const client = cluster([podKind.plural, 'p', [daemonSet]], ['daemonsets', 'ds', []])
    await expect(findOwner(client, search(2))).rejects.toThrow(/DaemonSet ds has no controller. Lower .* to 1/)
  })

  it('CAP-7 ends the producer with an error if the pod does not exist', async () => {
    const fixture = await oneZone()
    await fixture.start({ options: { owner: { podName: 'missing', level: 0 } } })
    expect(String(fixture.failures)).toMatch(/the pod kube-system\/missing does not exist. Set \$POD_NAME/)
  })
})
