// Changes attributes the way a user does: `stowage up` with one node and the built-in driver, a pod with a volume, and
// edits of claims. The tests check what the driver reports for its volume.
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import { type CsiConnection, connectDriver } from '../src/csi/index.ts'
import { type RunningServer, startServer } from './helpers/server.ts'
import { type Traces, tracesBelow } from './helpers/traces.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const PODS = '/api/v1/namespaces/default/pods'
const CLASSES = '/apis/storage.k8s.io/v1/volumeattributesclasses'
const DRIVER = 'local.csi.stowage.dev'
const MERGE = { 'content-type': 'application/merge-patch+json' }

describe('attributes of a volume in use', () => {
  let dir: string
  let traces: Traces
  let server: RunningServer
  let driver: CsiConnection
  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-attributes-')))
    await mkdir(join(dir, 'data'))
    traces = await tracesBelow(dir)
    server = await startServer({ dataDir: join(dir, 'data'), nodes: 1, flags: ['--pool-size', '2Gi'] })
    const [node] = server.nodes!.names
    const address = join(dir, 'data', 'nodes', node!, 'csi.sock')
    driver = connectDriver({ address, clock: systemClock(), log: silentLog })
    await aClass('silver', { iops: '500' })
    await aClass('gold', { iops: '1000', throughput: '100' })
    await aClass('odd', { tier: 'gold' })
  })
  afterAll(async () => {
    driver?.close()
    await server?.stop()
    await traces?.scrub()
    await rm(dir, { recursive: true, force: true })
  })

  const aClass = (name: string, parameters: object) =>
    server.call('POST', CLASSES, { metadata: { name }, driverName: DRIVER, parameters })
  const claim = async (name: string) => (await server.call('GET', `${CLAIMS}/${name}`)).json
  const status = async (name: string) => (await claim(name)).status
  const edit = async (name: string, spec: object) => {
    const { status: code, text } = await server.call('PATCH', `${CLAIMS}/${name}`, { spec }, MERGE)
    expect([code, code === 200 ? '' : text]).toEqual([200, ''])
  }
  const volumeOf = async (name: string) =>
    (await server.call('GET', `/api/v1/persistentvolumes/${(await claim(name)).spec.volumeName}`)).json
  /** What the driver reports for the claim's volume. */
  const limits = async (name: string) => {
    const { spec } = await volumeOf(name)
    const { status: found } = await driver.controller.controllerGetVolume({ volumeId: spec.csi.volumeHandle })
    return /limits of (.*?) (?:are|apply)/.exec(found?.volumeCondition?.message ?? '')?.[1]
  }
  const events = async (reason: string): Promise<string[]> => {
    const { json } = await server.call('GET', '/api/v1/events')
    return json.items.filter((event: any) => event.reason === reason).map(({ message }: any) => message)
  }

  async function aPodWithClaim(name: string, spec: object): Promise<void> {
    const { requests, ...rest } = { requests: {}, ...spec } as { requests?: object }
    await server.call('POST', CLAIMS, {
      metadata: { name },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '512Mi', ...requests } }, ...rest },
    })
    await server.call('POST', PODS, {
      metadata: { name },
      spec: {
        containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: name } }],
      },
    })
    await until(async () => (await server.call('GET', `${PODS}/${name}`)).json.status.phase === 'Running')
  }

  it('VAC-5 VAC-6 VAC-7 VAC-9 changes the class online, and keeps the old one if the driver refuses', async () => {
    await aPodWithClaim('orders', { volumeAttributesClassName: 'silver' })
    expect(await limits('orders')).toBe('500 iops')
    expect((await status('orders')).currentVolumeAttributesClassName).toBe('silver')

    await edit('orders', { volumeAttributesClassName: 'gold' })
    await until(async () => (await status('orders')).currentVolumeAttributesClassName === 'gold')
    expect(await limits('orders')).toBe('1000 iops and 100MiB/s')
    expect((await volumeOf('orders')).spec.volumeAttributesClassName).toBe('gold')
    expect(await events('VolumeModifySuccessful')).toEqual([
      'external resizer modified volume orders with vac gold successfully',
    ])

    await edit('orders', { volumeAttributesClassName: 'odd' })
    await until(async () => (await status('orders')).modifyVolumeStatus?.status === 'Infeasible')
    expect(await limits('orders')).toBe('1000 iops and 100MiB/s')
    expect((await events('VolumeModifyFailed')).join()).toContain('Unknown mutable parameter "tier"')

    await edit('orders', { volumeAttributesClassName: 'silver' })
    await until(async () => (await status('orders')).currentVolumeAttributesClassName === 'silver')
    expect(await limits('orders')).toBe('500 iops and 100MiB/s')
    expect((await status('orders')).conditions ?? []).toEqual([])

    await server.call('DELETE', `${CLASSES}/silver`)
    expect((await server.call('GET', `${CLASSES}/silver`)).json.metadata.deletionTimestamp).toBeDefined()
    await edit('orders', { volumeAttributesClassName: 'gold' })
    await until(async () => (await server.call('GET', `${CLASSES}/silver`)).status === 404)
  }, 60_000)

  it('PIO-1 PIO-3 PIO-4 raises and lowers iops and throughput of a claim online', async () => {
    await aPodWithClaim('logs', { requests: { iops: '300', throughput: '30' } })
    expect(await limits('logs')).toBe('300 iops and 30MiB/s')
    for (const [iops, throughput] of [
      ['900', '90Mi'],
      ['100', '10Mi'],
    ]) {
      await edit('logs', { resources: { requests: { iops, throughput } } })
      await until(async () => (await status('logs')).capacity.iops === iops)
      expect((await status('logs')).capacity).toMatchObject({ iops, throughput })
      expect((await status('logs')).allocatedResourceStatuses).toBeUndefined()
      expect((await volumeOf('logs')).spec.capacity).toMatchObject({ iops, throughput })
      expect(await limits('logs')).toBe(`${iops} iops and ${throughput}B/s`)
    }
    await edit('logs', { volumeAttributesClassName: 'gold' })
    await until(async () => (await status('logs')).modifyVolumeStatus?.status === 'Infeasible')
    expect((await events('VolumeModifyFailed')).join()).toMatch(/requests 100 iops.*says iops "1000"/)
    expect(await limits('logs')).toBe('100 iops and 10MiB/s')
    await edit('logs', { volumeAttributesClassName: null })
    await until(async () => (await status('logs')).modifyVolumeStatus === undefined)
    expect(await limits('logs')).toBe('100 iops and 10MiB/s')
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

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`still waiting for: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
