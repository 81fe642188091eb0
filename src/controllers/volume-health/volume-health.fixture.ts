// Fixture of the health monitor tests: an API server, a fake CSI driver and a manual clock.
import { create, type Message } from '@bufbuild/protobuf'
import { Registry } from 'prom-client'
import { onTestFinished } from 'vitest'
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
import { createVolumeHealth } from './volume-health.ts'

const EVENTS = '/api/v1/namespaces/default/events'
const MOUNT = { accessType: { case: 'mount', value: {} }, accessMode: { mode: 1 } } as const
export const LIST_INTERVAL_MS = 300_000
export const VOLUME_INTERVAL_MS = 60_000

export async function createHealthFixture(...capabilities: readonly ControllerCapability[]) {
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
    async createBoundClaim(name: string) {
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
    /** Waits until there are `count` events, and returns them as `claim type reason: message`, sorted. */
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
    /** Returns the events as `type reason: message`, the most recent last. */
    async eventsByTime(): Promise<string[]> {
      const { json } = await server.get(EVENTS)
      const events = (json.items as EventJson[]).sort(
        (a, b) => Date.parse(a.lastTimestamp) - Date.parse(b.lastTimestamp),
      )
      return events.map(({ type, reason, message }) => `${type} ${reason}: ${message}`)
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
  readonly lastTimestamp: string
}
