import { afterEach, beforeEach, describe, it } from 'vitest'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { DRIVER, gi, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

let fixture: SchedulerFixture
beforeEach(async () => {
  fixture = await startSchedulerFixture()
  await fixture.createClass('local')
  await fixture.createNode('n1')
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

  it('CAP-12 counts a volume that several pods use once', async () => {
    await fixture.client.create(csiNodeKind, aCSINode('n1', 1))
    await createPodWithClaims('first', 'a')
    await waitUntilBound('first')
    await createPodWithClaims('second', 'a')
    await waitUntilBound('second')
  })

  it('CAP-12 counts volumes that are still attached after their pod was deleted', async () => {
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

  it('CAP-12 rejects a node on which a driver with preventPodSchedulingIfMissing is not installed', async () => {
    await fixture.client.create(csiDriverKind, {
      metadata: { name: DRIVER },
      spec: { storageCapacity: false, preventPodSchedulingIfMissing: true },
    })
    await createPodWithClaims('first', 'a')
    await fixture.waitUntil(
      async () => (await fixture.message('first'))?.includes(`1 ${DRIVER} CSI driver is not installed on the node`),
      'the message to be reported',
    )
    await fixture.client.create(csiNodeKind, aCSINode('n1'))
    await waitUntilBound('first')
  })
})
