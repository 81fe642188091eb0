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
  fixture.storage.free.set('n1', gi(100))
})
afterEach(() => fixture.stop())

const driverOn = (node: string, count?: number) => ({
  metadata: { name: node },
  spec: {
    drivers: [
      { name: DRIVER, nodeID: node, topologyKeys: [], ...(count === undefined ? {} : { allocatable: { count } }) },
    ],
  },
})
const aPodWith = async (name: string, ...claims: string[]) => {
  for (const claim of claims) await fixture.createClaim(claim).catch(() => {})
  await fixture.createPod(name, { claims })
}
const bound = (pod: string) => fixture.until(() => fixture.nodeOf(pod), `${pod} to have a node`)
const REASON = '0/1 nodes are available: 1 node(s) exceed max volume count.'

describe('NodeVolumeLimits', () => {
  it('CAP-12 enforces the limit of the driver, and retries when it is raised or a pod leaves', async () => {
    await fixture.client.create(csiNodeKind, driverOn('n1', 2))
    await aPodWith('first', 'a', 'b')
    await bound('first')
    await aPodWith('second', 'c')
    await fixture.until(async () => (await fixture.message('second')) === REASON, 'the reason')
    await fixture.client.patch(csiNodeKind, { name: 'n1' }, { type: 'merge', body: driverOn('n1', 3) })
    await bound('second')
    await aPodWith('third', 'd')
    await fixture.until(async () => (await fixture.message('third')) === REASON, 'the reason')
    await fixture.server.delete('/api/v1/namespaces/default/pods/second', { gracePeriodSeconds: 0 })
    await bound('third')
  })

  it('CAP-12 counts a volume once, however many pods use it', async () => {
    await fixture.client.create(csiNodeKind, driverOn('n1', 1))
    await aPodWith('first', 'a')
    await bound('first')
    await aPodWith('second', 'a')
    await bound('second')
  })

  it('CAP-12 counts volumes that are still attached after their pod was deleted', async () => {
    await fixture.client.create(csiNodeKind, driverOn('n1', 1))
    await aPodWith('first', 'a')
    await bound('first')
    const volume = (await fixture.claim('a')).spec?.volumeName ?? ''
    const attachment = { attacher: DRIVER, nodeName: 'n1', source: { persistentVolumeName: volume } }
    await fixture.client.create(volumeAttachmentKind, { metadata: { name: 'va' }, spec: attachment })
    await fixture.server.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await aPodWith('second', 'b')
    await fixture.until(async () => (await fixture.message('second')) === REASON, 'the reason')
    await fixture.client.delete(volumeAttachmentKind, { name: 'va' })
    await bound('second')
  })

  it('CAP-12 rejects a node without a driver that sets preventPodSchedulingIfMissing', async () => {
    await fixture.client.create(csiDriverKind, {
      metadata: { name: DRIVER },
      spec: { storageCapacity: false, preventPodSchedulingIfMissing: true },
    })
    await aPodWith('first', 'a')
    await fixture.until(
      async () => (await fixture.message('first'))?.includes(`1 ${DRIVER} CSI driver is not installed on the node`),
      'the reason',
    )
    await fixture.client.create(csiNodeKind, driverOn('n1'))
    await bound('first')
  })
})
