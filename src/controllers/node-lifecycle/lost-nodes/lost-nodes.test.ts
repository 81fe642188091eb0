// Tests the lost-node controller on an API server: the conditions, taints and events of each phase, and the objects
// that it removes.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { leaseKind } from '../../../api/kinds/lease/lease.ts'
import { OUT_OF_SERVICE_TAINT, quarantineOf, RELEASED_FENCE } from '../../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { createNodeLifecycleFixture, type NodeLifecycleFixture } from '../node-lifecycle.fixture.ts'
import { phaseOf } from './plan-lost-node.ts'

let fixture: NodeLifecycleFixture

beforeEach(async () => {
  fixture = await createNodeLifecycleFixture()
})
afterEach(() => fixture.close())

const phase = async () => phaseOf(await fixture.node('a'))
const PHASE_REASONS = ['NodeFenced', 'NodeLost', 'NodeCleaned', 'NodeQuarantined', 'NodeReturned']
const phaseEvents = () => fixture.eventReasons().filter((reason) => PHASE_REASONS.includes(reason))

async function fence(): Promise<void> {
  const { spec } = await fixture.node('a')
  await fixture.setTaints('a', [...(spec?.taints ?? []), { key: OUT_OF_SERVICE_TAINT, effect: 'NoExecute' }])
  await fixture.settle()
}

async function returnNode(): Promise<void> {
  fixture.aliveNodes.add('a')
  await fixture.advance(10_000)
  await fixture.report('a')
  await fixture.settle()
}

const acknowledge = (value: string | undefined) =>
  fixture.client.patch(
    nodeKind,
    { name: 'a' },
    { type: 'merge', body: { metadata: { annotations: { [RELEASED_FENCE]: value } } } },
  )

it('PLUS-11 reports each phase of a lost node, removes its own objects, and returns it to service after its agent has confirmed the fence', async () => {
  const { client } = fixture
  await fixture.createNodeWithAgent('a')
  await fixture.createNodeWithAgent('b')
  for (const name of ['a', 'b'])
    await client.patch(nodeKind, { name }, { type: 'merge', body: { metadata: { labels: { host: name } } } })
  const createCapacity = (name: string, nodeTopology: object) =>
    client.create(csiStorageCapacityKind, {
      metadata: { namespace: 'default', name },
      storageClassName: 'fast',
      nodeTopology,
      capacity: '1Gi',
    } as never)
  await createCapacity('of-a', { matchLabels: { host: 'a' } })
  await createCapacity('of-b', { matchLabels: { host: 'b' } })
  await createCapacity('of-both', { matchExpressions: [{ key: 'host', operator: 'Exists' }] })
  await fixture.createPod('web', 'a')
  await client.create(volumeAttachmentKind, {
    metadata: { name: 'attached' },
    spec: { attacher: 'disks.example.com', nodeName: 'a', source: { persistentVolumeName: 'data' } },
  } as never)
  const { queueState } = fixture.start()
  await fixture.advance(10_000)
  expect(fixture.writes).toEqual([])

  fixture.aliveNodes.delete('a')
  await fixture.advance(50_000)
  expect(await phase()).toBe('Unreachable')
  expect(queueState('a')).toMatchObject({ is: 'stuck' })
  const capacities = async () => (await client.list(csiStorageCapacityKind)).items.map(({ metadata }) => metadata.name)
  expect(await capacities()).toHaveLength(3)

  await fence()
  expect(await phase()).toBe('Fenced') // the attachment still exists
  expect(await fixture.pod('web')).toBeUndefined()
  expect((await capacities()).sort()).toEqual(['of-b', 'of-both'])
  await expect(client.get(leaseKind, { namespace: 'kube-node-lease', name: 'a' })).rejects.toMatchObject({ code: 404 })
  expect(quarantineOf(await fixture.node('a'))).toBeDefined()

  await client.delete(volumeAttachmentKind, { name: 'attached' })
  await fixture.settle()
  expect(await phase()).toBe('Cleaned')

  await returnNode()
  expect(await phase()).toBe('Quarantined')
  await acknowledge('fence-of-earlier')
  await fixture.settle()
  expect(await phase()).toBe('Quarantined')
  const writesBefore = fixture.writes.length
  await acknowledge(quarantineOf(await fixture.node('a')))
  await fixture.settle()
  expect(await phase()).toBe('InService')
  expect(await fixture.taints('a')).toEqual([])
  expect(fixture.writes.length - writesBefore).toBe(2) // taints and conditions
  expect(phaseEvents()).toEqual(['NodeFenced', 'NodeCleaned', 'NodeQuarantined', 'NodeReturned'])
})

it('PLUS-11 keeps a returned node in quarantine while it uses volumes of removed pods, even if the taint was removed by hand', async () => {
  await fixture.createNodeWithAgent('a')
  await fixture.createNodeWithAgent('b')
  fixture.start()
  await fixture.client.patch(
    nodeKind,
    { name: 'a' },
    { type: 'merge', body: { status: { volumesInUse: ['kubernetes.io/csi/disks.example.com^data'] } } },
    { subresource: 'status' },
  )
  await fixture.advance(10_000)
  fixture.aliveNodes.delete('a')
  await fixture.advance(50_000)
  await fence()
  const { spec } = await fixture.node('a')
  await fixture.setTaints(
    'a',
    (spec?.taints ?? []).filter(({ key }) => key !== OUT_OF_SERVICE_TAINT),
  )
  await returnNode()
  await acknowledge(quarantineOf(await fixture.node('a')))
  await fixture.settle()
  expect(await phase()).toBe('Quarantined')
  await fixture.client.patch(
    nodeKind,
    { name: 'a' },
    { type: 'merge', body: { status: { volumesInUse: null } } },
    { subresource: 'status' },
  )
  await fixture.settle()
  expect(await phase()).toBe('InService')
})
