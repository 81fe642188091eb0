import { describe, expect, it } from 'vitest'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { aCapacity, CAPACITIES, createCapacityFixture, GI } from './capacity.fixture.ts'
import { findOwner } from './owner.ts'

async function oneZone() {
  const trial = await createCapacityFixture()
  await trial.aNode('n1', { zone: 'a' })
  await trial.aClass('fast')
  return trial
}

const PODS = '/api/v1/namespaces/kube-system/pods'
const aPod = (name: string, ownerReferences: OwnerReference[] = []) => ({
  metadata: { name, ownerReferences },
  spec: { containers: [{ name: 'c', image: 'i' }] },
})

describe('existing objects', () => {
  it('CAP-20 are not written by a restart', async () => {
    const trial = await oneZone()
    const first = await trial.start()
    const before = await trial.objects()
    await first.stop()
    const asked = trial.asked()
    await trial.start()
    expect(trial.asked()).toBe(asked + 1)
    expect(trial.writes).toEqual(['create'])
    expect(await trial.objects()).toEqual(before)
  })

  it('CAP-20 of an earlier external-provisioner are adopted unchanged', async () => {
    const trial = await oneZone()
    const found = aCapacity('csisc-old', 'fast', 'a', { capacity: '10Gi', maximumVolumeSize: '10Gi' })
    const { json } = await trial.server.post(CAPACITIES, found)
    await trial.start()
    expect(trial.writes).toEqual([])
    expect((await trial.objects()).map(({ metadata }) => metadata.uid)).toEqual([json.metadata.uid])
  })

  it('CAP-8 of another segment or class, of no segment, and all but the oldest duplicate are deleted', async () => {
    const trial = await oneZone()
    await trial.server.post(CAPACITIES, aCapacity('csisc-1', 'fast', 'a', { capacity: '10Gi' }))
    await trial.server.clock.advance(1_000)
    await trial.server.post(CAPACITIES, aCapacity('csisc-0', 'fast', 'a', { capacity: '10Gi' }))
    await trial.server.post(CAPACITIES, aCapacity('csisc-2', 'fast', 'z'))
    await trial.server.post(CAPACITIES, aCapacity('csisc-3', 'gone', 'a'))
    await trial.server.post(CAPACITIES, aCapacity('csisc-4', 'fast', 'a', { nodeTopology: undefined }))
    const matchExpressions = [{ key: 'zone', operator: 'Exists' }]
    await trial.server.post(CAPACITIES, aCapacity('csisc-5', 'fast', 'a', { nodeTopology: { matchExpressions } }))
    await trial.start()
    expect((await trial.objects()).map(({ metadata }) => metadata.name)).toEqual(['csisc-1'])
    expect(await trial.summary()).toEqual(['fast a 10Gi'])
  })

  it.each([
    ['another producer', { 'csi.storage.k8s.io/managed-by': 'external-provisioner-n9' }],
    ['nobody', { 'csi.storage.k8s.io/managed-by': null }],
    ['another driver', { 'csi.storage.k8s.io/drivername': 'other.example' }],
  ])('CAP-7 of %s are left alone, and our own is created beside them', async (_, labels) => {
    const trial = await oneZone()
    await trial.server.post(CAPACITIES, aCapacity('theirs', 'fast', 'a'))
    await trial.server.post(CAPACITIES, aCapacity('theirs-too', 'gone', 'a'))
    for (const name of ['theirs', 'theirs-too']) {
      await trial.server.patch(`${CAPACITIES}/${name}`, { metadata: { labels } }, 'merge')
    }
    const before = (await trial.objects()).map(({ metadata }) => metadata.resourceVersion)
    await trial.start()
    await trial.pass(60_000)
    const after = await trial.objects()
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
    const trial = await oneZone()
    await trial.start()
    const [object] = await trial.objects()
    await trial.server.delete(`${CAPACITIES}/${object!.metadata.name}`)
    await trial.settle()
    const [again, ...more] = await trial.objects()
    expect(again!.metadata.uid).not.toBe(object!.metadata.uid)
    expect(again).toMatchObject({ capacity: '10Gi' })
    expect(more).toEqual([])
  })

  it('CAP-8 are adopted and corrected when recreated with a wrong size', async () => {
    const trial = await oneZone()
    const first = await trial.start()
    const [object] = await trial.objects()
    await first.stop()
    await trial.server.delete(`${CAPACITIES}/${object!.metadata.name}`)
    await trial.server.post(CAPACITIES, aCapacity('csisc-wrong', 'fast', 'a'))
    await trial.start()
    expect((await trial.objects()).map(({ metadata: { name }, capacity }) => [name, capacity])).toEqual([
      ['csisc-wrong', '10Gi'],
    ])
  })

  it('CAP-8 are corrected when their size is changed', async () => {
    const trial = await oneZone()
    await trial.start()
    const [object] = await trial.objects()
    await trial.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { capacity: '77Gi' }, 'merge')
    await trial.settle()
    expect(await trial.summary()).toEqual(['fast a 10Gi'])
  })

  it('CAP-7 are left alone and replaced when their labels are removed', async () => {
    const trial = await oneZone()
    await trial.start()
    const [object] = await trial.objects()
    const url = `${CAPACITIES}/${object!.metadata.name}`
    await trial.server.patch(url, { metadata: { labels: null }, capacity: '5' }, 'merge')
    await trial.settle()
    expect(await trial.summary()).toEqual(['fast a 10Gi', 'fast a 5'])
    await trial.deleteClass('fast')
    await trial.settle()
    expect((await trial.objects()).map(({ metadata }) => metadata.uid)).toEqual([object!.metadata.uid])
  })

  it('CAP-7 are not deleted when their labels are removed before the delete', async () => {
    const trial = await oneZone()
    let strip: (() => Promise<unknown>) | undefined
    const around = (client: Client): Client => ({
      ...client,
      delete: async (...args) => {
        await strip?.()
        return client.delete(...args)
      },
    })
    await trial.start({ around })
    const [object] = await trial.objects()
    strip = () => trial.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { metadata: { labels: null } }, 'merge')
    await trial.deleteClass('fast')
    await trial.settle()
    expect(await trial.summary()).toEqual(['fast a 10Gi'])
  })

  it('CAP-7 are not updated when their labels are removed before the update', async () => {
    const trial = await oneZone()
    let strip: (() => Promise<unknown>) | undefined
    const around = (client: Client): Client => ({
      ...client,
      patch: async (...args) => {
        await strip?.()
        return client.patch(...args)
      },
    })
    await trial.start({ around })
    const [object] = await trial.objects()
    strip = () => trial.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { metadata: { labels: null } }, 'merge')
    await trial.aVolume('v', GI, 'a')
    await trial.pass(100)
    expect(await trial.summary()).toEqual(['fast a 10Gi', 'fast a 9Gi'])
  })

  it('CAP-8 are created once by two reconciles before the watch event', async () => {
    const trial = await oneZone()
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
    const { queue } = await trial.start({ around })
    queue.add('fast [["zone","a"]]')
    await trial.settle()
    expect(trial.asked()).toBe(2)
    expect(trial.writes).toEqual(['create'])
    release()
    await trial.pass(60_000)
    expect(trial.writes).toEqual(['create'])
  })
})

describe('the owner of objects', () => {
  it('CAP-7 is added when configured later, and kept when no longer configured', async () => {
    const trial = await oneZone()
    const first = await trial.start()
    await first.stop()
    const { json: pod } = await trial.server.post(PODS, aPod('producer'))
    const owned = await trial.start({ options: { owner: { podName: 'producer', level: 0 } } })
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'producer', uid: pod.metadata.uid, controller: true }
    expect((await trial.objects()).map(({ metadata }) => metadata.ownerReferences)).toEqual([[owner]])
    await owned.stop()
    await trial.start()
    expect((await trial.objects()).map(({ metadata }) => metadata.ownerReferences)).toEqual([[owner]])
    expect(trial.writes).toEqual(['create', 'patch'])
  })

  it('CAP-20 of an upgraded pod is added, and the previous owner stays the controller', async () => {
    const trial = await oneZone()
    await trial.server.post(PODS, aPod('old'))
    await trial.server.post(PODS, aPod('new'))
    const first = await trial.start({ options: { owner: { podName: 'old', level: 0 } } })
    await first.stop()
    await trial.start({ options: { owner: { podName: 'new', level: 0 } } })
    const [object] = await trial.objects()
    expect(object!.metadata.ownerReferences?.map(({ name, controller }) => [name, controller])).toEqual([
      ['old', true],
      ['new', undefined],
    ])
    expect(trial.writes).toEqual(['create', 'patch'])
  })

  const daemonSet = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'ds', uid: 'ds-uid', controller: true }
  const replicaSet = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs', uid: 'rs-uid', controller: true }
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', uid: 'd-uid', controller: true }
  const stranger = { apiVersion: 'v1', kind: 'ConfigMap', name: 'cm', uid: 'cm-uid' }

  /** Only what is asked for by plural and name is there. */
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
    const trial = await oneZone()
    await trial.start({ options: { owner: { podName: 'missing', level: 0 } } })
    expect(String(trial.failures)).toMatch(/the pod kube-system\/missing is not there. Set \$POD_NAME/)
  })
})
