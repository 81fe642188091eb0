import { create } from '@bufbuild/protobuf'
import { describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../../base/clock.ts'
import type { FakeRule, FakeSettings } from '../../../csi/fake/index.ts'
import { CreateVolumeRequestSchema } from '../../../csi/gen/csi_pb.js'
import { startProgramFixture } from '../../program.fixture.ts'
import { readResizerSettings } from './command.ts'
import { runResizer } from './run.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'
const DRIVER = 'fake.stowage.example'
const GI = 1024 ** 3
const WAIT = { timeout: 20_000, interval: 20 }

interface RunOptions {
  readonly driver?: Partial<FakeSettings>
  readonly flags?: Record<string, string>
  readonly env?: Record<string, string>
  readonly rules?: readonly FakeRule[]
}

async function startCluster({ driver = {}, flags = {}, env = {}, rules = [] }: RunOptions = {}) {
  const program = await startProgramFixture()
  const { api, kubeconfig, signal } = program
  const { fake, endpoint } = await program.serveFakeDriver(driver)
  fake.script.setRules(rules)
  const settings = readResizerSettings({
    csiAddress: endpoint,
    kubeconfig,
    retryIntervalStart: '10ms',
    kubeApiQps: '-1',
    ...flags,
  })
  const lines: { fields: any; message: string }[] = []
  const write = (fields: object, message: string) => void lines.push({ fields, message })
  const log = { debug: write, info: write, warn: write, error: write }
  const clock = systemClock()
  const resizerRun = program.track(
    runResizer({ settings, clock, random: Math.random, log, signal, write: () => {}, env }),
  )

  /** Creates a claim that is bound to a volume of 1Gi and requests 2Gi. */
  async function createGrowingClaim(name: string, zone?: string): Promise<void> {
    await api.post('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'expandable' },
      provisioner: DRIVER,
      allowVolumeExpansion: true,
    })
    const request = create(CreateVolumeRequestSchema, {
      name,
      capacityRange: { requiredBytes: BigInt(GI) },
      volumeCapabilities: [{ accessMode: { mode: 1 }, accessType: { case: 'mount', value: {} } }],
    })
    const { volume } = await fake.controller.createVolume(request, { signal })
    const resources = (storage: string) => ({ resources: { requests: { storage } } })
    const common = { accessModes: ['ReadWriteOnce'], storageClassName: 'expandable' }
    const { json } = await api.post(CLAIMS, {
      metadata: { name },
      spec: { ...common, volumeName: `pv-${name}`, ...resources('1Gi') },
    })
    await api.post(VOLUMES, {
      metadata: { name: `pv-${name}` },
      spec: {
        ...common,
        capacity: { storage: '1Gi' },
        claimRef: { namespace: 'default', name, uid: json.metadata.uid },
        csi: { driver: DRIVER, volumeHandle: volume!.volumeId },
        ...(zone ? { nodeAffinity: { required: { nodeSelectorTerms: [createZoneTerm(zone)] } } } : {}),
      },
    })
    const status = { phase: 'Bound', capacity: { storage: '1Gi' } }
    await api.patch(`${CLAIMS}/${name}/status`, { status }, 'merge')
    const { status: code } = await api.patch(`${CLAIMS}/${name}`, { spec: resources('2Gi') }, 'merge')
    expect(code).toBe(200)
  }

  const waitUntilPending = (name: string) =>
    vi.waitFor(async () => {
      const { json } = await api.get(`${CLAIMS}/${name}`)
      expect(json.status.allocatedResourceStatuses?.storage).toBe('NodeResizePending')
    }, WAIT)
  return { api, fake, running: resizerRun, lines, createGrowingClaim, waitUntilPending, stop: program.abort }
}

const createZoneTerm = (zone: string) => ({ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] })

describe('stowage resizer', () => {
  it('REX-1 SYS-5 expands volumes over HTTP, records events and serves metrics', async () => {
    const { api, lines, createGrowingClaim, waitUntilPending } = await startCluster({
      flags: { httpEndpoint: '127.0.0.1:0' },
    })
    await createGrowingClaim('orders')
    await waitUntilPending('orders')
    expect((await api.get(`${VOLUMES}/pv-orders`)).json.spec.capacity).toEqual({ storage: '2Gi' })
    await vi.waitFor(async () => {
      const { items } = (await api.get('/api/v1/events')).json
      const events = items.map(({ reason, source }: any) => `${source.component}: ${reason}`)
      expect(events).toEqual(
        expect.arrayContaining([
          `external-resizer ${DRIVER}: Resizing`,
          `external-resizer ${DRIVER}: FileSystemResizeRequired`,
        ]),
      )
    }, WAIT)
    const { monitoring } = lines.find(({ message }) => message === 'started')!.fields
    const text = await (await fetch(`${monitoring}/metrics`)).text()
    expect(text).toMatch(/csi_sidecar_operations_seconds_count\{.*\/csi.v1.Controller\/ControllerExpandVolume.*\} 1/)
    expect(text).toContain(`workqueue_depth{name="${DRIVER}-pvc"}`)
    expect((await fetch(`${monitoring}/healthz/leader-election`)).status).toBe(200)
  })

  it('SYS-8 uses the lease of the upstream resizer', async () => {
    const { api, createGrowingClaim, waitUntilPending } = await startCluster({ flags: { leaderElection: 'true' } })
    await createGrowingClaim('orders')
    await waitUntilPending('orders')
    const { status } = await api.get(
      '/apis/coordination.k8s.io/v1/namespaces/default/leases/external-resizer-fake-stowage-example',
    )
    expect(status).toBe(200)
  })

  it('with --node-deployment expands only volumes of its node, holds a lease per node, and requires NODE_NAME', async () => {
    const segments = { zone: 'a' }
    const driver = { pools: [{ name: 'pool', capacityBytes: 100 * GI, segments }], nodes: [{ id: 'node-1', segments }] }
    const flags = { nodeDeployment: 'true', leaderElection: 'true' }
    const { api, fake, createGrowingClaim, waitUntilPending } = await startCluster({
      driver,
      flags,
      env: { NODE_NAME: 'node-1' },
    })
    await createGrowingClaim('in-other-zone', 'b')
    await createGrowingClaim('in-own-zone', 'a')
    await waitUntilPending('in-own-zone')
    const expandCalls = fake.record.calls.filter(({ method }) => method === 'ControllerExpandVolume')
    expect(expandCalls).toHaveLength(1)
    const { status } = await api.get(
      '/apis/coordination.k8s.io/v1/namespaces/default/leases/external-resizer-fake-stowage-example-node-1',
    )
    expect(status).toBe(200)
    const clusterWithoutNodeName = await startCluster({ driver, flags })
    await expect(clusterWithoutNodeName.running).rejects.toThrow(/--node-deployment needs the name of the node/)
  })

  it('retries if the driver is unavailable while its capabilities are read', async () => {
    const effect = { do: 'fail', code: 'UNAVAILABLE' } as const
    const rules = [{ method: 'ControllerGetCapabilities', times: 1, effect }]
    const { createGrowingClaim, waitUntilPending, lines } = await startCluster({ rules })
    await createGrowingClaim('orders')
    await waitUntilPending('orders')
    expect(lines.map(({ message }) => message)).toContain(
      'cannot read the name and capabilities of the CSI driver; retrying every second',
    )
  })

  it('exits with an error that contains the missing capability of the driver', async () => {
    const clusterWithoutExpansion = await startCluster({ driver: { controller: ['CREATE_DELETE_VOLUME'], node: [] } })
    await expect(clusterWithoutExpansion.running).rejects.toThrow(/fake\.stowage\.example at .* EXPAND_VOLUME/)
    const clusterWithoutController = await startCluster({ driver: { plugin: [] } })
    await expect(clusterWithoutController.running).rejects.toThrow(/does not report the capability CONTROLLER_SERVICE/)
  })

  it('REX-1 works with a driver that expands volumes on nodes only', async () => {
    const { fake, createGrowingClaim, waitUntilPending } = await startCluster({
      driver: { controller: ['CREATE_DELETE_VOLUME'] },
    })
    await createGrowingClaim('orders')
    await waitUntilPending('orders')
    expect(fake.record.calls.filter(({ method }) => method === 'ControllerExpandVolume')).toEqual([])
  })
})
