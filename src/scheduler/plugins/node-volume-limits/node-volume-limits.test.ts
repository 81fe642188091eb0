import { afterEach, beforeEach, describe, it } from 'vitest'
import { csiDriverKind } from '../../../api/kinds/csi-driver/csi-driver.ts'
import { csiNodeKind } from '../../../api/kinds/csi-node/csi-node.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { DRIVER, gi, type SchedulerFixture, startSchedulerFixture } from '../../scheduler.fixture.ts'

let trial: SchedulerFixture
beforeEach(async () => {
  trial = await startSchedulerFixture()
  await trial.aClass('local')
  await trial.aNode('n1')
  trial.storage.free.set('n1', gi(100))
})
afterEach(() => trial.stop())

const driverOn = (node: string, count?: number) => ({
  metadata: { name: node },
  spec: {
    drivers: [
      { name: DRIVER, nodeID: node, topologyKeys: [], ...(count === undefined ? {} : { allocatable: { count } }) },
    ],
  },
})
const aPodWith = async (name: string, ...claims: string[]) => {
  for (const claim of claims) await trial.aClaim(claim).catch(() => {})
  await trial.aPod(name, { claims })
}
const placed = (pod: string) => trial.until(() => trial.nodeOf(pod), `${pod} to have a node`)
const REASON = '0/1 nodes are available: 1 node(s) exceed max volume count.'

describe('how many volumes a node takes', () => {
  it('CAP-12 is what the driver says, and grows when the driver says so or a pod leaves', async () => {
    await trial.client.create(csiNodeKind, driverOn('n1', 2))
    await aPodWith('first', 'a', 'b')
    await placed('first')
    await aPodWith('second', 'c')
    await trial.until(async () => (await trial.message('second')) === REASON, 'the reason')
    await trial.client.patch(csiNodeKind, { name: 'n1' }, { type: 'merge', body: driverOn('n1', 3) })
    await placed('second')
    await aPodWith('third', 'd')
    await trial.until(async () => (await trial.message('third')) === REASON, 'the reason')
    await trial.trial.delete('/api/v1/namespaces/default/pods/second', { gracePeriodSeconds: 0 })
    await placed('third')
  })

  it('CAP-12 counts a volume once, however many pods use it', async () => {
    await trial.client.create(csiNodeKind, driverOn('n1', 1))
    await aPodWith('first', 'a')
    await placed('first')
    await aPodWith('second', 'a')
    await placed('second')
  })

  it('CAP-12 counts volumes that are still attached though their pod is gone', async () => {
    await trial.client.create(csiNodeKind, driverOn('n1', 1))
    await aPodWith('first', 'a')
    await placed('first')
    const volume = (await trial.claim('a')).spec?.volumeName ?? ''
    const attachment = { attacher: DRIVER, nodeName: 'n1', source: { persistentVolumeName: volume } }
    await trial.client.create(volumeAttachmentKind, { metadata: { name: 'va' }, spec: attachment })
    await trial.trial.delete('/api/v1/namespaces/default/pods/first', { gracePeriodSeconds: 0 })
    await aPodWith('second', 'b')
    await trial.until(async () => (await trial.message('second')) === REASON, 'the reason')
    await trial.client.delete(volumeAttachmentKind, { name: 'va' })
    await placed('second')
  })

  it('CAP-12 is none where a driver insists on being there and is not', async () => {
    await trial.client.create(csiDriverKind, {
      metadata: { name: DRIVER },
      spec: { storageCapacity: false, preventPodSchedulingIfMissing: true },
    })
    await aPodWith('first', 'a')
    await trial.until(
      async () => (await trial.message('first'))?.includes(`1 ${DRIVER} CSI driver is not installed on the node`),
      'the reason',
    )
    await trial.client.create(csiNodeKind, driverOn('n1'))
    await placed('first')
  })
})
