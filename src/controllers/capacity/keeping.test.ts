import { describe, expect, it } from 'vitest'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Client } from '../../client/index.ts'
import { aCapacity, CAPACITIES, GI, startCapacityTrial } from './capacity.fixture.ts'
import { findOwner } from './owner.ts'

async function oneZone() {
  const trial = await startCapacityTrial()
  await trial.aNode('n1', { zone: 'a' })
  await trial.aClass('fast')
  return trial
}

const PODS = '/api/v1/namespaces/kube-system/pods'
const aPod = (name: string, ownerReferences: OwnerReference[] = []) => ({
  metadata: { name, ownerReferences },
  spec: { containers: [{ name: 'c', image: 'i' }] },
})

describe('objects that are there already', () => {
  it('CAP-20 a restart asks for everything and writes nothing', async () => {
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

  it('CAP-20 objects of an external-provisioner that ran here before are taken over as they are', async () => {
    const trial = await oneZone()
    const found = aCapacity('csisc-old', 'fast', 'a', { capacity: '10Gi', maximumVolumeSize: '10Gi' })
    const { json } = await trial.server.post(CAPACITIES, found)
    await trial.start()
    expect(trial.writes).toEqual([])
    expect((await trial.objects()).map(({ metadata }) => metadata.uid)).toEqual([json.metadata.uid])
  })

  it('CAP-8 obsolete ones go: of another segment or class, of no segment at all, and all but the oldest of several', async () => {
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
  ])('CAP-7 those of %s are left alone, and one of our own is made beside them', async (_, labels) => {
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

describe('objects that others touch', () => {
  it('CAP-8 one that is deleted is made again', async () => {
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

  it('CAP-8 one that is made again with a wrong size is taken over and corrected', async () => {
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

  it('CAP-8 one whose size is changed is corrected at once', async () => {
    const trial = await oneZone()
    await trial.start()
    const [object] = await trial.objects()
    await trial.server.patch(`${CAPACITIES}/${object!.metadata.name}`, { capacity: '77Gi' }, 'merge')
    await trial.settle()
    expect(await trial.summary()).toEqual(['fast a 10Gi'])
  })

  it('CAP-7 one whose labels are taken off is not ours any more: it stays, and a new one is made', async () => {
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

  it('CAP-7 one that loses its labels between the look and the delete is not deleted', async () => {
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

  it('CAP-7 one that loses its labels between the look and the update is not changed', async () => {
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

  it('CAP-8 two looks before the watch tells make one object, not two', async () => {
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

describe('whom objects belong to', () => {
  it('CAP-7 an owner that is configured later is added, and stays when none is configured any more', async () => {
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

  it('CAP-20 the next pod of an upgrade is added beside the one before, which stays the controller', async () => {
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
  ])('CAP-7 level %i is the %s, and nothing is read that need not be', async (level, kind, client) => {
    expect(await findOwner(client, search(level))).toMatchObject({ kind, controller: true })
  })

  it('CAP-7 a level that is not there is refused with the level that is', async () => {
    const client = cluster([podKind.plural, 'p', [daemonSet]], ['daemonsets', 'ds', []])
    await expect(findOwner(client, search(2))).rejects.toThrow(/DaemonSet ds has no controller. Lower .* to 1/)
  })

  it('CAP-7 a pod that is not there ends the producer: the deployment must be corrected', async () => {
    const trial = await oneZone()
    await trial.start({ options: { owner: { podName: 'missing', level: 0 } } })
    expect(String(trial.failures)).toMatch(/the pod kube-system\/missing is not there. Set \$POD_NAME/)
  })
})
