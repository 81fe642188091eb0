import { describe, expect, it } from 'vitest'
import { podKind } from '../../api/kinds/pod/pod.ts'
import type { OwnerReference } from '../../api/kinds/shared/meta-schema.ts'
import { ApiError } from '../../api/status-error.ts'
import { authorizeUnservedKinds } from '../../apiserver/rbac/component-access.fixture.ts'
import type { Client } from '../../client/index.ts'
import { createCapacityFixture } from './capacity.fixture.ts'
import { capacityKind } from './items.ts'
import { findOwner } from './owner.ts'

async function createFixtureWithOneZone() {
  const fixture = await createCapacityFixture()
  await fixture.createNode('n1', { zone: 'a' })
  await fixture.createClass('fast')
  return fixture
}

const PODS = '/api/v1/namespaces/kube-system/pods'
const aPod = (name: string, ownerReferences: OwnerReference[] = []) => ({
  metadata: { name, ownerReferences },
  spec: { containers: [{ name: 'c', image: 'i' }] },
})

describe('the owner of capacity objects', () => {
  it('CAP-7 is added when configured later, and kept when no longer configured', async () => {
    const fixture = await createFixtureWithOneZone()
    const producer = await fixture.start()
    await producer.stop()
    const { json: pod } = await fixture.server.post(PODS, aPod('producer'))
    const producerWithOwner = await fixture.start({ options: { owner: { podName: 'producer', level: 0 } } })
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'producer', uid: pod.metadata.uid, controller: true }
    expect((await fixture.objects()).map(({ metadata }) => metadata.ownerReferences)).toEqual([[owner]])
    await producerWithOwner.stop()
    await fixture.start()
    expect((await fixture.objects()).map(({ metadata }) => metadata.ownerReferences)).toEqual([[owner]])
    expect(fixture.writes).toEqual(['create', 'patch'])
  })

  it('CAP-7 receives no new objects after it was deleted, because the garbage collector would delete them', async () => {
    const fixture = await createFixtureWithOneZone()
    await fixture.server.post(PODS, aPod('producer'))
    await fixture.start({ options: { owner: { podName: 'producer', level: 0 } } })
    const [object] = await fixture.objects()
    const { name = '', namespace } = object?.metadata ?? {}
    await fixture.server.delete(`${PODS}/producer?gracePeriodSeconds=0`)
    await fixture.client.delete(capacityKind, { name, namespace }) // as the garbage collector does
    await fixture.settle()
    await fixture.advance(300_000)
    expect(await fixture.objects()).toEqual([])
    expect(fixture.writes).toEqual(['create', 'delete'])
  })

  it('CAP-20 of an upgraded pod is added, and the previous owner stays the controller', async () => {
    const fixture = await createFixtureWithOneZone()
    await fixture.server.post(PODS, aPod('old'))
    await fixture.server.post(PODS, aPod('new'))
    const producer = await fixture.start({ options: { owner: { podName: 'old', level: 0 } } })
    await producer.stop()
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
  const nonController = { apiVersion: 'v1', kind: 'ConfigMap', name: 'cm', uid: 'cm-uid' }

  /** Returns a client that can read only these objects. */
  const clientWithObjects = (...objects: [plural: string, name: string, owners: OwnerReference[]][]) =>
    ({
      async get(kind: { plural: string }, { name }: { name: string }) {
        const existingObject = objects.find(([plural, objectName]) => plural === kind.plural && objectName === name)
        if (!existingObject) throw new ApiError(404, 'NotFound', `${kind.plural} "${name}" not found`)
        return { metadata: { name, uid: `${name}-uid`, ownerReferences: existingObject[2] } }
      },
    }) as unknown as Client
  const search = (level: number) => ({ namespace: 'kube-system', podName: 'p', level })

  it.each([
    [0, 'Pod', clientWithObjects(['pods', 'p', [daemonSet]])],
    [1, 'DaemonSet', clientWithObjects(['pods', 'p', [nonController, daemonSet]])],
    [2, 'Deployment', clientWithObjects(['pods', 'p', [replicaSet]], ['replicasets', 'rs', [deployment]])],
  ])('CAP-7 at level %i is the %s', async (level, kind, objects) => {
    const client = authorizeUnservedKinds(objects, 'provisioner')
    expect(await findOwner(client, search(level))).toMatchObject({ kind, controller: true })
  })

  it('CAP-7 at a missing level is rejected with the highest existing level', async () => {
    const client = clientWithObjects([podKind.plural, 'p', [daemonSet]], ['daemonsets', 'ds', []])
    await expect(findOwner(client, search(2))).rejects.toThrow(/DaemonSet ds has no controller. Lower .* to 1/)
  })

  it('CAP-7 ends the producer with an error if the pod does not exist', async () => {
    const fixture = await createFixtureWithOneZone()
    await fixture.start({ options: { owner: { podName: 'missing', level: 0 } } })
    expect(String(fixture.failures)).toMatch(/the pod kube-system\/missing does not exist. Set \$POD_NAME/)
  })
})
