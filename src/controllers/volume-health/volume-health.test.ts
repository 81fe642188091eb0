import { create, type Message } from '@bufbuild/protobuf'
import { Registry } from 'prom-client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { persistentVolumeClaimKind } from '../../api/kinds/claim/claim.ts'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import { persistentVolumeKind } from '../../api/kinds/volume/volume.ts'
import type { PersistentVolume } from '../../api/kinds/volume/volume-schema.ts'
import { createServerFixture } from '../../apiserver/server.fixture.ts'
import { silentLog } from '../../base/log.ts'
import { createFakeDriver, fakeSettings } from '../../csi/fake/index.ts'
import { type ControllerCapability, createCsiDriver, readDriverFacts } from '../../csi/index.ts'
import { GUARDED_CACHES } from '../../processes/pruned-fields.fixture.ts'
import { createCacheSet, createEventRecorder } from '../../runtime/index.ts'
import { createVolumeHealthMetrics } from './metrics.ts'
import { canMonitorHealth, createVolumeHealth } from './volume-health.ts'

const EVENTS = '/api/v1/namespaces/default/events'
const MOUNT = { accessType: { case: 'mount', value: {} }, accessMode: { mode: 1 } } as const
const LIST_INTERVAL_MS = 300_000
const VOLUME_INTERVAL_MS = 60_000

async function createHealthFixture(...capabilities: readonly ControllerCapability[]) {
  const server = await createServerFixture()
  const { clock } = server
  const client = server.client()
  const controller: readonly ControllerCapability[] = ['CREATE_DELETE_VOLUME', 'VOLUME_CONDITION', ...capabilities]
  const fake = createFakeDriver({ clock, settings: fakeSettings({ controller }) })
  const services = {
    Identity: fake.identity,
    Controller: fake.controller,
    Node: fake.node('node-1'),
  } as unknown as Record<string, Record<string, Handler>>
  const driver = createCsiDriver(async (method, request, { signal = new AbortController().signal }) => {
    const response = await services[method.parent.name]![method.localName]!(request, { signal })
    return create(method.output, response as never)
  })
  const facts = await readDriverFacts(driver)
  const registry = new Registry()
  const healthMetrics = createVolumeHealthMetrics(registry)

  async function start() {
    const common = { client: server.clientOf('health-monitor'), clock, random: Math.random, log: silentLog }
    const caches = createCacheSet({ ...common, reductions: GUARDED_CACHES })
    const events = createEventRecorder({ ...common, component: 'csi-pv-monitor-controller-test' })
    const health = createVolumeHealth({ ...common, caches, driver, facts, events, healthMetrics })
    const abort = new AbortController()
    const running = Promise.all([health.run(abort.signal), events.run(abort.signal)])
    const stop = async () => {
      abort.abort()
      await server.advanceUntilSettled(running)
      await caches.stop()
    }
    onTestFinished(() => (abort.signal.aborted ? undefined : stop()))
    return { stop }
  }

  return {
    fake,
    start,
    /** Creates a volume of the driver that is bound to a claim. Returns the volume in the driver. */
    async aBoundClaim(name: string) {
      const { volume } = await driver.controller.createVolume({ name: `pv-${name}`, volumeCapabilities: [MOUNT] })
      const volumeHandle = volume!.volumeId
      const claim = await client.create(persistentVolumeClaimKind, {
        metadata: { namespace: 'default', name },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
          volumeName: `pv-${name}`,
          storageClassName: '',
        },
      } as PersistentVolumeClaim)
      const { uid } = claim.metadata
      await client.create(persistentVolumeKind, {
        metadata: { name: `pv-${name}` },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '1Gi' },
          csi: { driver: facts.name, volumeHandle },
          claimRef: { namespace: 'default', name, uid },
        },
      } as PersistentVolume)
      const body = { status: { phase: 'Bound' } }
      const options = { subresource: 'status' } as const
      await client.patch(persistentVolumeClaimKind, { namespace: 'default', name }, { type: 'merge', body }, options)
      return fake.state.volumes[volumeHandle]!
    },
    advance: (ms: number) => server.advanceUntilSettled(clock.sleep(ms)),
    /** Waits until there are as many events, and returns them as `claim type reason: message`, sorted. */
    async waitForEvents(count: number): Promise<string[]> {
      let lines: string[] = []
      await server.waitUntil(async () => {
        const { json } = await server.get(EVENTS)
        lines = json.items.map(
          (event: EventJson) => `${event.involvedObject.name} ${event.type} ${event.reason}: ${event.message}`,
        )
        return lines.length >= count
      }, `${count} events`)
      return lines.sort()
    },
    /** Returns the gauge of abnormal volumes, or undefined if no monitor runs. */
    async abnormalVolumes() {
      const { values } = (await registry.getMetricsAsJSON())[0] as { values: { value: number }[] }
      return values[0]?.value
    },
    callsOf: (method: string) => fake.record.calls.filter((call) => call.method === method).length,
  }
}

type Handler = (request: Message, call: { readonly signal: AbortSignal }) => Promise<object>

interface EventJson {
  readonly involvedObject: { readonly name: string }
  readonly type: string
  readonly reason: string
  readonly message: string
}

const brokenDisk = { abnormal: true, message: 'disk 3 is broken' }
const ABNORMAL = 'orders Warning VolumeConditionAbnormal: disk 3 is broken'
const NORMAL = 'orders Normal VolumeConditionNormal: The Volume returns to the healthy state'

describe('the health monitor', () => {
  it('PLUS-5 records an event on the claim of an abnormal volume that the driver lists, and one when it has recovered', async () => {
    const fixture = await createHealthFixture('LIST_VOLUMES')
    const volume = await fixture.aBoundClaim('orders')
    await fixture.aBoundClaim('healthy')
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

  it('PLUS-5 reads the condition of each volume from a driver that cannot list volumes', async () => {
    const fixture = await createHealthFixture('GET_VOLUME')
    const volume = await fixture.aBoundClaim('orders')
    await fixture.start()
    await fixture.advance(VOLUME_INTERVAL_MS / 2)
    volume.condition = brokenDisk
    await fixture.advance(VOLUME_INTERVAL_MS)
    expect(await fixture.waitForEvents(1)).toEqual([ABNORMAL])
  })

  it('PLUS-5 reports a volume that the driver does not find as abnormal', async () => {
    const fixture = await createHealthFixture('GET_VOLUME')
    const { id } = await fixture.aBoundClaim('orders')
    delete fixture.fake.state.volumes[id]
    await fixture.start()
    const [line] = await fixture.waitForEvents(1)
    expect(line).toMatch(/^orders Warning VolumeConditionAbnormal: The driver does not find the volume/)
  })

  it('PLUS-5 reads the volumes that the list has no condition for', async () => {
    const fixture = await createHealthFixture('LIST_VOLUMES', 'GET_VOLUME')
    const { id } = await fixture.aBoundClaim('orders')
    delete fixture.fake.state.volumes[id]
    await fixture.start()
    expect(await fixture.waitForEvents(1)).toHaveLength(1)
    expect(fixture.callsOf('ControllerGetVolume')).toBe(1)
  })

  it('PLUS-5 records the recovery of a volume whose condition an earlier process recorded, once', async () => {
    const fixture = await createHealthFixture('LIST_VOLUMES')
    const volume = await fixture.aBoundClaim('orders')
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

  it('SYS-29 continues after a failed list', async () => {
    const fixture = await createHealthFixture('LIST_VOLUMES')
    const volume = await fixture.aBoundClaim('orders')
    volume.condition = brokenDisk
    fixture.fake.script.setRules([{ method: 'ListVolumes', times: 1, effect: { do: 'fail', code: 'INTERNAL' } }])
    await fixture.start()
    await fixture.advance(LIST_INTERVAL_MS)
    expect(await fixture.waitForEvents(1)).toEqual([ABNORMAL])
  })

  it('PLUS-5 needs VOLUME_CONDITION and a call that returns conditions', async () => {
    const canMonitor = async (...controller: readonly ControllerCapability[]) =>
      canMonitorHealth({ controller: new Set(controller) } as unknown as Parameters<typeof canMonitorHealth>[0])
    expect(await canMonitor('VOLUME_CONDITION', 'LIST_VOLUMES')).toBe(true)
    expect(await canMonitor('VOLUME_CONDITION', 'GET_VOLUME')).toBe(true)
    expect(await canMonitor('VOLUME_CONDITION')).toBe(false)
    expect(await canMonitor('LIST_VOLUMES', 'GET_VOLUME')).toBe(false)
  })
})
