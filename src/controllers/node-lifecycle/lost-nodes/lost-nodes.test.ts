// Tests the lost-node controller on an API server: the phases, taints and events of a lost node, the objects that the
// controller removes, and crashes during the removal.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { csiStorageCapacityKind } from '../../../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { leaseKind } from '../../../api/kinds/lease/lease.ts'
import { OUT_OF_SERVICE_TAINT, quarantineOf, RELEASED_FENCE } from '../../../api/kinds/node/fencing.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { LAST_FAILURE, PROVISIONER, SELECTED_NODE } from '../../../volumes/names.ts'
import { intentOf } from '../../../volumes/provisioning-intent.ts'
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

it('PLUS-11 reports a lost node as Unreachable, Fenced, Cleaned and Quarantined, removes its objects, and returns it to service after its agent has confirmed the fence', async () => {
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

const PROVISIONER_NAME = 'local.example.com'
const createClaim = (name: string, metadata: object, spec: object = {}) =>
  fixture.client.create(persistentVolumeClaimKind, {
    metadata: { namespace: 'default', name, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  } as never)
const claim = async (name: string) =>
  (await fixture.client.list(persistentVolumeClaimKind)).items.find(({ metadata }) => metadata.name === name)
const selected = (node: string) => ({ annotations: { [PROVISIONER]: PROVISIONER_NAME, [SELECTED_NODE]: node } })

async function loseNode(): Promise<void> {
  await fixture.advance(10_000)
  fixture.aliveNodes.delete('a')
  await fixture.advance(50_000)
  await fence()
}

it('PLUS-11 releases the claims that wait for a volume on a lost node, and the intents of its provisioner', async () => {
  await fixture.createNodeWithAgent('a')
  await fixture.createNodeWithAgent('b')
  const ownIntent = intentOf(PROVISIONER_NAME, 'a')
  const centralIntent = intentOf(PROVISIONER_NAME)
  await createClaim('waiting', selected('a'))
  await createClaim('started', { ...selected('a'), finalizers: [ownIntent, 'example.com/mine'] })
  await createClaim('central', { ...selected('a'), finalizers: [centralIntent] })
  await createClaim('elsewhere', { ...selected('b'), finalizers: [intentOf(PROVISIONER_NAME, 'b')] })
  await createClaim('bound', selected('a'), { volumeName: 'data' })
  await createClaim('deleted', { ...selected('a'), finalizers: [ownIntent] })
  await fixture.client.delete(persistentVolumeClaimKind, { namespace: 'default', name: 'deleted' })
  fixture.start()
  await fixture.advance(10_000)
  fixture.aliveNodes.delete('a')
  await fixture.advance(50_000)
  expect((await claim('waiting'))?.metadata.annotations?.[SELECTED_NODE]).toBe('a') // the machine may still run

  await fence()
  for (const name of ['waiting', 'started', 'central']) {
    const { annotations } = (await claim(name))!.metadata
    expect(annotations?.[SELECTED_NODE]).toBe(undefined)
    expect(annotations?.[LAST_FAILURE]).toBe('node "a": the node is lost')
  }
  expect((await claim('started'))?.metadata.finalizers).not.toContain(ownIntent)
  expect((await claim('started'))?.metadata.finalizers).toContain('example.com/mine')
  expect((await claim('central'))?.metadata.finalizers).toContain(centralIntent)
  expect((await claim('deleted'))?.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection'])
  expect((await claim('bound'))?.metadata.annotations?.[SELECTED_NODE]).toBe('a')
  expect((await claim('elsewhere'))?.metadata.annotations?.[SELECTED_NODE]).toBe('b')
  expect(fixture.eventReasons().filter((reason) => reason === 'SelectedNodeLost')).toHaveLength(3)
  expect(await phase()).toBe('Cleaned')

  await createClaim('late', selected('a')) // for example by a scheduler whose cache lags behind
  await fixture.settle()
  expect((await claim('late'))?.metadata.annotations?.[SELECTED_NODE]).toBe(undefined)
})

it('PLUS-11 completes the clean-up of a lost node after a crash before and after each of its writes', async () => {
  await fixture.close()
  let hasCrashed = true
  for (let crashAt = 0; hasCrashed; crashAt++) {
    for (const isBefore of [true, false]) {
      fixture = await createNodeLifecycleFixture()
      await fixture.createNodeWithAgent('a')
      await fixture.createNodeWithAgent('b')
      await fixture.client.patch(
        nodeKind,
        { name: 'a' },
        { type: 'merge', body: { metadata: { labels: { host: 'a' } } } },
      )
      await fixture.client.create(csiStorageCapacityKind, {
        metadata: { namespace: 'default', name: 'of-a' },
        storageClassName: 'fast',
        nodeTopology: { matchLabels: { host: 'a' } },
        capacity: '1Gi',
      } as never)
      for (const name of ['one', 'two'])
        await createClaim(name, { ...selected('a'), finalizers: [intentOf(PROVISIONER_NAME, 'a')] })
      await fixture.createPod('web', 'a')
      await loseNode()

      let writes = 0
      hasCrashed = false
      const first = fixture.start({
        async intercept(verb) {
          if (hasCrashed) throw new Error('the process has crashed')
          if (verb === 'get' || writes++ !== crashAt) return
          hasCrashed = true
          if (isBefore) throw new Error('the process has crashed')
        },
      })
      await fixture.advance(60_000)
      await first.stop()
      fixture.start()
      await fixture.advance(60_000)
      expect(await phase()).toBe('Cleaned')
      for (const name of ['one', 'two']) {
        const { annotations, finalizers = [] } = (await claim(name))!.metadata
        expect(annotations?.[SELECTED_NODE]).toBe(undefined)
        expect(finalizers).not.toContain(intentOf(PROVISIONER_NAME, 'a'))
      }
      expect((await fixture.client.list(csiStorageCapacityKind)).items).toEqual([])
      expect(await fixture.pod('web')).toBe(undefined)
      await fixture.close()
    }
  }
  fixture = await createNodeLifecycleFixture()
})
