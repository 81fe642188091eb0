import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { SELECTED_NODE } from '../../../volumes/names.ts'
import { DRIVER, gi, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

let fixture: SchedulerFixture
beforeEach(async () => {
  fixture = await startSchedulerFixture()
  await fixture.createClass('local')
  await fixture.createNode('n1', { hasDriver: false })
  fixture.storage.freeBytes.set('n1', gi(100))
})
afterEach(() => fixture.stop())

const aCSINode = (node: string, count?: number) => ({
  metadata: { name: node },
  spec: {
    drivers: [
      { name: DRIVER, nodeID: node, topologyKeys: [], ...(count === undefined ? {} : { allocatable: { count } }) },
    ],
  },
})
const createPodWithClaims = async (name: string, ...claims: string[]) => {
  for (const claim of claims) await fixture.createClaim(claim).catch(() => {})
  await fixture.createPod(name, { claims })
}
const waitUntilBound = (pod: string) => fixture.waitUntil(() => fixture.nodeOf(pod), `${pod} to have a node`)
const LIMIT_EXCEEDED =
  '0/1 nodes are available: 1 node(s) exceed max volume count. ' +
  'preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.'

describe('NodeVolumeLimits', () => {
  it('CAP-12 enforces the limit of the driver, and retries when it is raised or a pod is deleted', async () => {
    await fixture.client.create(csiNodeKind, aCSINode('n1', 2))
    await createPodWithClaims('first', 'a', 'b')
    await waitUntilBound('first')
    await createPodWithClaims('second', 'c')
    await fixture.waitUntil(
      async () => (await fixture.message('second')) === LIMIT_EXCEEDED,
      'the message to be reported',
    )
    await fixture.client.patch(csiNodeKind, { name: 'n1' }, { type: 'merge', body: aCSINode('n1', 3) })
    await waitUntilBound('second')
    await createPodWithClaims('third', 'd')
    await fixture.waitUntil(
      async () => (await fixture.message('third')) === LIMIT_EXCEEDED,
      'the message to be reported',
    )
    await fixture.server.delete('/api/v1/namespaces/default/pods/second', { gracePeriodSeconds: 0 })
    await waitUntilBound('third')
  })

  it('counts a volume that several pods use once', async () => {
    await fixture.client.create(csiNodeKind, aCSINode('n1', 1))
    await createPodWithClaims('first', 'a')
    await waitUntilBound('first')
    await createPodWithClaims('second', 'a')
    await waitUntilBound('second')
  })

  it('counts volumes that are still attached after their pod was deleted', async () => {
    await fixture.client.create(csiNodeKind, aCSINode('n1', 1))
    await createPodWithClaims('first', 'a')
    await waitUntilBound('first')
    const volume = (await fixture.claim('a')).spec?.volumeName
    const attachment = { attacher: DRIVER, nodeName: 'n1', source: { persistentVolumeName: volume } }
    await fixture.client.create(volumeAttachmentKind, { metadata: { name: 'va' }, spec: attachment })
    await fixture.server.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await createPodWithClaims('second', 'b')
    await fixture.waitUntil(
      async () => (await fixture.message('second')) === LIMIT_EXCEEDED,
      'the message to be reported',
    )
    await fixture.client.delete(volumeAttachmentKind, { name: 'va' })
    await waitUntilBound('second')
  })

  it('CAP-12 rejects a node on which the driver has not registered, and retries when it registers', async () => {
    await fixture.client.create(csiDriverKind, { metadata: { name: DRIVER }, spec: { storageCapacity: false } })
    await createPodWithClaims('first', 'a')
    await fixture.waitUntil(
      async () => (await fixture.message('first'))?.includes(`1 ${DRIVER} CSI driver is not installed on the node`),
      'the message to be reported',
    )
    await fixture.client.create(csiNodeKind, aCSINode('n1'))
    await waitUntilBound('first')
  })

  it('schedules on any node until the provisioner registers as a CSI driver, then only on nodes with the driver', async () => {
    await createPodWithClaims('first', 'a')
    await waitUntilBound('first')
    await fixture.createNode('n2')
    fixture.storage.freeBytes.set('n2', gi(100))
    for (const name of ['b', 'c', 'd']) await createPodWithClaims(`pod-${name}`, name)
    for (const name of ['b', 'c', 'd']) await waitUntilBound(`pod-${name}`)
    expect(await Promise.all(['b', 'c', 'd'].map((name) => fixture.nodeOf(`pod-${name}`)))).toEqual(['n2', 'n2', 'n2'])
  })

  it('keeps the slot of a volume that is being provisioned, even after the scheduler restarts', async () => {
    await fixture.client.create(csiNodeKind, aCSINode('n1', 1))
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    fixture.storage.beforeCreate = () => released
    await createPodWithClaims('first', 'a')
    const hasNode = async () => (await fixture.claim('a')).metadata.annotations?.[SELECTED_NODE]
    await fixture.waitUntil(hasNode, 'the claim to have a node')
    // The new scheduler evaluates the second pod first, because of its priority.
    await fixture.createPriority('high', 1000)
    await fixture.restart()
    await fixture.createClaim('b')
    await fixture.createPod('second', { claims: ['b'], spec: { priorityClassName: 'high' } })
    await fixture.waitUntil(
      async () => (await fixture.message('second'))?.includes('1 node(s) exceed max volume count'),
      'the message to be reported',
    )
    expect(await fixture.nodeOf('second')).toBeUndefined()
    release()
    await waitUntilBound('first')
    await fixture.server.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await waitUntilBound('second')
  })

  it('frees the slot when the claim of a volume that is being provisioned is deleted', async () => {
    await fixture.client.create(csiNodeKind, aCSINode('n1', 1))
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    fixture.storage.beforeCreate = () => released
    await fixture.createClaim('orphan', { metadata: { annotations: { [SELECTED_NODE]: 'n1' } } })
    await createPodWithClaims('first', 'a')
    await fixture.waitUntil(
      async () => (await fixture.message('first'))?.includes('1 node(s) exceed max volume count'),
      'the message to be reported',
    )
    await fixture.server.delete('/api/v1/namespaces/default/persistentvolumeclaims/orphan')
    release()
    await waitUntilBound('first')
  })
})
