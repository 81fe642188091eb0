import { afterEach, describe, expect, it } from 'vitest'
import { csiStorageCapacityKind } from '../api/kinds/csi-storage-capacity/csi-storage-capacity.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { gi, HOST, type SchedulerFixture, startSchedulerFixture } from './scheduler.fixture.ts'

let fixture: SchedulerFixture
afterEach(() => fixture.stop())

const NODES = 10
const VOLUMES_PER_NODE = 20
const CLASSES = ['plain', 'tuned']
/** How many reports the driver's capacity lags behind. */
const LATE_BY_REPORTS = 3

/** One pool per node, shared by two classes; capacity reports are always late. */
async function fillToTheLastVolume(capacityReservation: boolean) {
  fixture = await startSchedulerFixture({ capacityReservation })
  await fixture.createDriver()
  for (const name of CLASSES) await fixture.createClass(name)
  const nodes = Array.from({ length: NODES }, (_, index) => `n${index}`)
  const history = new Map<string, bigint[]>()
  for (const name of nodes) {
    await fixture.createNode(name, { allocatable: { cpu: '64', memory: '256Gi', pods: '1000' } })
    fixture.storage.free.set(name, gi(VOLUMES_PER_NODE))
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
      const seen = history.get(name)!
      seen.push(fixture.storage.free.get(name)!)
      const body = { capacity: `${seen[Math.max(0, seen.length - 1 - LATE_BY_REPORTS)]}` }
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
  await fixture.until(async () => {
    if (++polls % 10 === 0) await report()
    const { items } = await fixture.client.list(podKind)
    return items.every(({ spec }) => spec?.nodeName)
  }, 'every pod to have a node')
  return {
    refused: fixture.storage.refused.length,
    created: fixture.storage.created,
    left: [...fixture.storage.free.values()],
  }
}

describe('a burst of pods that fills every node to the last volume', () => {
  it('CAP-16 PLUS-3 completes without a refused volume, though reports are late and classes share a pool', async () => {
    const { refused, created, left } = await fillToTheLastVolume(true)
    expect(refused).toBe(0)
    expect(created).toBe(NODES * VOLUMES_PER_NODE)
    expect(left.every((bytes) => bytes === 0n)).toBe(true)
  })

  it('CAP-16 completes without reservations, with refused volumes', async () => {
    const { refused, created } = await fillToTheLastVolume(false)
    expect(refused).toBeGreaterThan(0)
    expect(created).toBe(NODES * VOLUMES_PER_NODE)
  })
})
