// Changes the attributes of volumes in use with `stowage up`, one node and the built-in driver. The tests compare the status
// of the claim with the limits that the driver reports for the volume.
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { type CsiConnection, connectDriver } from '../src/csi/index.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { type RunningServer, startServer } from './helpers/server.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const DRIVER = 'local.csi.stowage.dev'
const MERGE = { 'content-type': 'application/merge-patch+json' }

describe('attributes of a volume in use', () => {
  let dir: string
  let leftovers: HostLeftovers
  let server: RunningServer
  let driver: CsiConnection
  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-attributes-')))
    await mkdir(join(dir, 'data'))
    leftovers = await findLeftoversBelow(dir)
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 1, flags: ['--pool-size', '2Gi'] })
    const [node] = server.nodes!.names
    const address = join(dir, 'data', 'nodes', node!, 'csi.sock')
    driver = connectDriver({ address, clock: systemClock(), log: silentLog })
    await createClass('silver', { iops: '500' })
    await createClass('gold', { iops: '1000', throughput: '100' })
    await createClass('odd', { tier: 'gold' })
  })
  afterAll(async () => {
    driver?.close()
    await server?.stop()
    await leftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  const createClass = (name: string, parameters: object) =>
    server.call('POST', CLASSES, { metadata: { name }, driverName: DRIVER, parameters })
  const getClaim = async (name: string) => (await server.call('GET', `${CLAIMS}/${name}`)).json
  const getStatus = async (name: string) => (await getClaim(name)).status
  const patchClaim = async (name: string, spec: object) => {
    const { status, text } = await server.call('PATCH', `${CLAIMS}/${name}`, { spec }, MERGE)
    expect([status, status === 200 ? '' : text]).toEqual([200, ''])
  }
  const getVolume = async (name: string) =>
    (await server.call('GET', `/api/v1/persistentvolumes/${(await getClaim(name)).spec.volumeName}`)).json
  /** Returns the limits that the driver reports for the claim's volume. */
  const getLimits = async (name: string) => {
    const { spec } = await getVolume(name)
    const { status: volumeStatus } = await driver.controller.controllerGetVolume({ volumeId: spec.csi.volumeHandle })
    return /limits of (.*?) (?:are|apply)/.exec(volumeStatus?.volumeCondition?.message ?? '')?.[1]
  }
  /** Waits for an event, because events are recorded after the change that they report. */
  const waitForEvent = (reason: string, message: RegExp) =>
    pollUntil(async () => {
      const { json } = await server.call('GET', '/api/v1/events')
      return json.items.some((event: any) => event.reason === reason && message.test(event.message))
    })

  async function startPodWithClaim(name: string, spec: object): Promise<void> {
    const { requests, ...specFields } = { requests: {}, ...spec } as { requests?: object }
    await server.call('POST', CLAIMS, {
      metadata: { name },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '512Mi', ...requests } },
        ...specFields,
      },
    })
    await server.call('POST', PODS, {
      metadata: { name },
      spec: {
        containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
      },
    })
    await pollUntil(async () => (await server.call('GET', `${PODS}/${name}`)).json.status.phase === 'Running')
  }

  it('VAC-5 VAC-6 VAC-7 VAC-9 changes the class of a volume in use, keeps its limits if the driver rejects the new class, and protects a class in use', async () => {
    await startPodWithClaim('orders', { volumeAttributesClassName: 'silver' })
    expect(await getLimits('orders')).toBe('500 iops')
    expect((await getStatus('orders')).currentVolumeAttributesClassName).toBe('silver')

    await patchClaim('orders', { volumeAttributesClassName: 'gold' })
    await pollUntil(async () => (await getStatus('orders')).currentVolumeAttributesClassName === 'gold')
    expect(await getLimits('orders')).toBe('1000 iops and 100MiB/s')
    expect((await getVolume('orders')).spec.volumeAttributesClassName).toBe('gold')
    await waitForEvent('VolumeModifySuccessful', /^external resizer modified volume orders with vac gold successfully$/)

    await patchClaim('orders', { volumeAttributesClassName: 'odd' })
    await pollUntil(async () => (await getStatus('orders')).modifyVolumeStatus?.status === 'Infeasible')
    expect(await getLimits('orders')).toBe('1000 iops and 100MiB/s')
    await waitForEvent('VolumeModifyFailed', /Unknown mutable parameter "tier"/)

    await patchClaim('orders', { volumeAttributesClassName: 'silver' })
    await pollUntil(async () => (await getStatus('orders')).currentVolumeAttributesClassName === 'silver')
    expect(await getLimits('orders')).toBe('500 iops and 100MiB/s')
    expect((await getStatus('orders')).conditions ?? []).toEqual([])

    await server.call('DELETE', `${CLASSES}/silver`)
    expect((await server.call('GET', `${CLASSES}/silver`)).json.metadata.deletionTimestamp).toBeDefined()
    await patchClaim('orders', { volumeAttributesClassName: 'gold' })
    await pollUntil(async () => (await server.call('GET', `${CLASSES}/silver`)).status === 404)
  }, 60_000)

  it('PIO-1 PIO-3 PIO-4 raises and lowers iops and throughput of a volume in use, and rejects a class with other iops', async () => {
    await startPodWithClaim('logs', { requests: { iops: '300', throughput: '30' } })
    expect(await getLimits('logs')).toBe('300 iops and 30MiB/s')
    for (const [iops, throughput] of [
      ['900', '90Mi'],
      ['100', '10Mi'],
    ]) {
      await patchClaim('logs', { resources: { requests: { iops, throughput } } })
      await pollUntil(async () => (await getStatus('logs')).capacity.iops === iops)
      expect((await getStatus('logs')).capacity).toMatchObject({ iops, throughput })
      expect((await getStatus('logs')).allocatedResourceStatuses).toBeUndefined()
      expect((await getVolume('logs')).spec.capacity).toMatchObject({ iops, throughput })
      expect(await getLimits('logs')).toBe(`${iops} iops and ${throughput}B/s`)
    }
    await patchClaim('logs', { volumeAttributesClassName: 'gold' })
    await pollUntil(async () => (await getStatus('logs')).modifyVolumeStatus?.status === 'Infeasible')
    await waitForEvent('VolumeModifyFailed', /requests 100 iops.*specifies iops "1000"/)
    expect(await getLimits('logs')).toBe('100 iops and 10MiB/s')
    await patchClaim('logs', { volumeAttributesClassName: null })
    await pollUntil(async () => (await getStatus('logs')).modifyVolumeStatus === undefined)
    expect(await getLimits('logs')).toBe('100 iops and 10MiB/s')
  }, 60_000)

  it('VAC-11 PIO-9 counts modifications in metrics', async () => {
    const { text } = await server.call('GET', '/metrics')
    expect(text).toMatch(/controller_modify_volume_total\{driver_name="local.csi.stowage.dev"\} [1-9]/)
    expect(text).toMatch(/controller_update_io_provisioning_total\{driver_name="local.csi.stowage.dev"\} 2/)
    expect(text).toMatch(/controller_modify_volume_errors_total\{.*grpc_status_code="InvalidArgument"\} 1/)
    expect(text).toMatch(
      /csi_sidecar_operations_seconds_count\{.*ControllerModifyVolume.*grpc_status_code="InvalidArgument".*\} 1/,
    )
    expect(text).toMatch(/pv_collector_bound_pvc_count\{.*volume_attributes_class="gold"\} 1/)
  })
})

async function pollUntil(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`timed out waiting for: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
