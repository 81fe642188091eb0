import { afterEach, describe, expect, it } from 'vitest'
import { csiStorageCapacityKind } from '../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { gi, HOST, type SchedulerFixture, startSchedulerFixture } from './scheduler.fixture.ts'

let fixture: SchedulerFixture
afterEach(() => fixture.stop())

const NODES = 10
const VOLUMES_PER_NODE = 20
const CLASSES = ['plain', 'tuned']
/** The number of reports by which the published capacity lags behind the actual one. */
const REPORT_LAG = 3

/** Creates as many pods as fit. Each node has one pool, which two classes share; capacity reports always lag behind. */
async function fillAllNodes(reservesCapacity: boolean) {
  fixture = await startSchedulerFixture({ reservesCapacity })
  await fixture.createDriver()
  for (const name of CLASSES) await fixture.createClass(name)
  const nodes = Array.from({ length: NODES }, (_, index) => `n${index}`)
  const history = new Map<string, bigint[]>()
  for (const name of nodes) {
    await fixture.createNode(name, { allocatable: { cpu: '64', memory: '256Gi', pods: '1000' } })
    fixture.storage.freeBytes.set(name, gi(VOLUMES_PER_NODE))
    history.set(name, [])
    for (const storageClassName of CLASSES) {
      await fixture.createCapacity(`${storageClassName}-${name}`, {
        storageClassName,
        nodeTopology: { matchLabels: { [HOST]: name } },
        capacity: `${VOLUMES_PER_NODE}Gi`,
      })
    }
  }
  const report = async () => {
    for (const name of nodes) {
      const samples = history.get(name)!
      samples.push(fixture.storage.freeBytes.get(name)!)
      const body = { capacity: `${samples[Math.max(0, samples.length - 1 - REPORT_LAG)]}` }
      for (const storageClass of CLASSES) {
        const ref = { namespace: 'default', name: `${storageClass}-${name}` }
        await fixture.client.patch(csiStorageCapacityKind, ref, { type: 'merge', body })
      }
    }
  }
  const count = NODES * VOLUMES_PER_NODE
  for (let index = 0; index < count; index++) {
    const storageClassName = CLASSES[index % CLASSES.length]!
    await fixture.createPod(`p${index}`, { ephemeral: { scratch: { size: '1Gi', storageClassName } } })
  }
  let polls = 0
  await fixture.waitUntil(async () => {
    if (++polls % 10 === 0) await report()
    const { items } = await fixture.client.list(podKind)
    return items.every(({ spec }) => spec?.nodeName)
  }, 'every pod to have a node')
  return {
    rejectedCount: fixture.storage.rejectedRequests.length,
    createdCount: fixture.storage.volumeCount,
    freeBytes: [...fixture.storage.freeBytes.values()],
  }
}

describe('a burst of pods that fills every node', () => {
  it('CAP-16 PLUS-3 is scheduled without a failed CreateVolume call, even though reports lag and classes share a pool', async () => {
    const { rejectedCount, createdCount, freeBytes } = await fillAllNodes(true)
    expect(rejectedCount).toBe(0)
    expect(createdCount).toBe(NODES * VOLUMES_PER_NODE)
    expect(freeBytes.every((bytes) => bytes === 0n)).toBe(true)
  })

  it('CAP-16 is scheduled only after failed CreateVolume calls if reservations are disabled', async () => {
    const { rejectedCount, createdCount } = await fillAllNodes(false)
    expect(rejectedCount).toBeGreaterThan(0)
    expect(createdCount).toBe(NODES * VOLUMES_PER_NODE)
  })
})
