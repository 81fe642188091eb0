import { describe, expect, it } from 'vitest'
import type { ControllerCapability } from '../../csi/index.ts'
import { createHealthFixture, LIST_INTERVAL_MS, VOLUME_INTERVAL_MS } from './volume-health.fixture.ts'
import { canMonitorHealth } from './volume-health.ts'

const brokenDisk = { abnormal: true, message: 'disk 3 is broken' }
const ABNORMAL = 'orders Warning VolumeConditionAbnormal: disk 3 is broken'
const NORMAL = 'orders Normal VolumeConditionNormal: The Volume returns to the healthy state'

describe('the health monitor', () => {
  it('records an event on the claim of an abnormal volume that the driver lists, and one when it has recovered', async () => {
    const fixture = await createHealthFixture('LIST_VOLUMES')
    const volume = await fixture.createBoundClaim('orders')
    await fixture.createBoundClaim('healthy')
    volume.condition = brokenDisk
    await fixture.start()
    expect(await fixture.waitForEvents(1)).toEqual([ABNORMAL])
    expect(await fixture.abnormalVolumes()).toBe(1)
    delete volume.condition
    await fixture.advance(LIST_INTERVAL_MS)
    expect(await fixture.waitForEvents(2)).toEqual([NORMAL, ABNORMAL])
    expect(await fixture.abnormalVolumes()).toBe(0)
    await fixture.advance(2 * LIST_INTERVAL_MS)
    expect(await fixture.waitForEvents(2)).toEqual([NORMAL, ABNORMAL])
    expect(fixture.callsOf('ControllerGetVolume')).toBe(0)
  })

  it('reads the condition of each volume from a driver that cannot list volumes', async () => {
    const fixture = await createHealthFixture('GET_VOLUME')
    const volume = await fixture.createBoundClaim('orders')
    await fixture.start()
    await fixture.advance(VOLUME_INTERVAL_MS / 2)
    volume.condition = brokenDisk
    await fixture.advance(VOLUME_INTERVAL_MS)
    expect(await fixture.waitForEvents(1)).toEqual([ABNORMAL])
  })

  it('reports a volume that the driver cannot find as abnormal', async () => {
    const fixture = await createHealthFixture('GET_VOLUME')
    const { id } = await fixture.createBoundClaim('orders')
    delete fixture.fake.state.volumes[id]
    await fixture.start()
    const [line] = await fixture.waitForEvents(1)
    expect(line).toMatch(/^orders Warning VolumeConditionAbnormal: The driver cannot find the volume/)
  })

  it('reads the condition of a volume that is missing in the list of the driver', async () => {
    const fixture = await createHealthFixture('LIST_VOLUMES', 'GET_VOLUME')
    const { id } = await fixture.createBoundClaim('orders')
    delete fixture.fake.state.volumes[id]
    await fixture.start()
    expect(await fixture.waitForEvents(1)).toHaveLength(1)
    expect(fixture.callsOf('ControllerGetVolume')).toBe(1)
  })

  it('records the recovery of a volume whose condition an earlier process recorded, once', async () => {
    const fixture = await createHealthFixture('LIST_VOLUMES')
    const volume = await fixture.createBoundClaim('orders')
    volume.condition = brokenDisk
    const first = await fixture.start()
    await fixture.waitForEvents(1)
    await first.stop()
    await fixture.advance(60_000)
    delete volume.condition
    const second = await fixture.start()
    expect(await fixture.waitForEvents(2)).toEqual([NORMAL, ABNORMAL])
    await second.stop()
    const calls = fixture.callsOf('ListVolumes')
    await fixture.start()
    await fixture.advance(LIST_INTERVAL_MS)
    expect(fixture.callsOf('ListVolumes')).toBeGreaterThan(calls)
    expect(await fixture.waitForEvents(2)).toEqual([NORMAL, ABNORMAL])
  })

  it('continues after a failed list', async () => {
    const fixture = await createHealthFixture('LIST_VOLUMES')
    const volume = await fixture.createBoundClaim('orders')
    volume.condition = brokenDisk
    fixture.fake.script.setRules([{ method: 'ListVolumes', times: 1, effect: { do: 'fail', code: 'INTERNAL' } }])
    await fixture.start()
    await fixture.advance(LIST_INTERVAL_MS)
    expect(await fixture.waitForEvents(1)).toEqual([ABNORMAL])
  })

  it('needs VOLUME_CONDITION and a call that returns conditions', async () => {
    const canMonitor = async (...controller: readonly ControllerCapability[]) =>
      canMonitorHealth({ controller: new Set(controller) } as unknown as Parameters<typeof canMonitorHealth>[0])
    expect(await canMonitor('VOLUME_CONDITION', 'LIST_VOLUMES')).toBe(true)
    expect(await canMonitor('VOLUME_CONDITION', 'GET_VOLUME')).toBe(true)
    expect(await canMonitor('VOLUME_CONDITION')).toBe(false)
    expect(await canMonitor('LIST_VOLUMES', 'GET_VOLUME')).toBe(false)
  })
})
