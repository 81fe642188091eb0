// Runs `stowage sidecar` against an API server and a fake driver, with the role that `stowage rbac print` prints for it.
import { describe, expect, it, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { ApiError } from '../../../api/status-error.ts'
import { ADMIN, type Json, type ServerFixtureOptions } from '../../../apiserver/server.fixture.ts'
import { systemClock, systemRandom } from '../../../base/clock.ts'
import { silentLog } from '../../../base/log.ts'
import { type FakeSettings, fakeSettings } from '../../../csi/fake/index.ts'
import { runSidecar } from '../../../processes/run-sidecar.ts'
import { startProgramFixture } from '../../program.fixture.ts'
import { printRoles } from '../rbac/print.ts'
import { runStowageSidecar } from './run.ts'
import { readSidecarSettings } from './settings.ts'

const DRIVER = 'fake.stowage.example'
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'
const VOLUMES = '/api/v1/persistentvolumes'
const EVENTS = '/api/v1/namespaces/default/events'
const STORAGE = '/apis/storage.k8s.io/v1'
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases'
const OWN_LEASE = 'stowage-sidecar-fake-stowage-example'
const UPSTREAM_LEASES = {
  provisioner: 'fake-stowage-example',
  resizer: 'external-resizer-fake-stowage-example',
  attacher: 'external-attacher-leader-fake-stowage-example',
}
const WAIT = { timeout: 20_000, interval: 20 }
const GI = 1024 ** 3
const TOKEN = 'sidecar'
const WORKER = 'system:serviceaccount:default:worker'

/** A server with RBAC. The sidecar's token authenticates the service account default/worker. */
const SERVER: ServerFixtureOptions = {
  usesRbac: true,
  authenticator: {
    authenticate: ({ authorization }) =>
      authorization === `Bearer ${TOKEN}`
        ? {
            is: 'authenticated',
            user: {
              name: 'system:serviceaccount:default:worker',
              groups: ['system:serviceaccounts', 'system:authenticated'],
            },
          }
        : { is: 'authenticated', user: ADMIN },
    authenticateToken: () => undefined,
  },
}

interface StartOptions {
  readonly server?: ServerFixtureOptions
  readonly driver?: Partial<FakeSettings>
  readonly flags?: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
}

async function startCluster({
  server = SERVER,
  driver = {},
  flags = {},
  env = { NAMESPACE: 'default' },
}: StartOptions = {}) {
  const program = await startProgramFixture(server)
  const { api, signal } = program
  const { fake, endpoint } = await program.serveFakeDriver(driver)
  program.runOtherControllers()
  const post = async (path: string, body: object): Promise<Json> => {
    const { status, json } = await api.post(path, body)
    expect(status, JSON.stringify(json)).toBe(201)
    return json
  }
  const roles = printRoles({ component: 'sidecar', namespace: 'default', serviceAccount: 'worker' })
  for (const document of parseAllDocuments(roles)) {
    const { apiVersion, kind, metadata, ...object }: Json = document.toJS()
    const prefix = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
    const namespace = metadata.namespace ? `/namespaces/${metadata.namespace}` : ''
    await post(`${prefix}${namespace}/${kind.toLowerCase()}s`, { apiVersion, kind, metadata, ...object })
  }
  const kubeconfig = await program.writeKubeconfig(TOKEN)
  const allFlags = { csiAddress: endpoint, kubeconfig, retryIntervalStart: '10ms', ...flags }

  function startSidecar(ownFlags: Readonly<Record<string, string>> = {}) {
    const lines: { level: string; fields: Json; message: string }[] = []
    const write = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message })
    const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
    const stop = new AbortController()
    const settings = readSidecarSettings({ ...allFlags, ...ownFlags })
    const deps = { clock: systemClock(), random: systemRandom(), log, signal: AbortSignal.any([signal, stop.signal]) }
    const sidecarRun = program.track(runStowageSidecar({ ...deps, settings, env, write: () => {} }))
    return {
      lines,
      running: sidecarRun,
      stop: async () => {
        stop.abort()
        await sidecarRun
      },
      waitForLine: (message: string) =>
        vi.waitFor(() => {
          const line = lines.find((candidate) => candidate.message === message)
          expect(line, lines.map((candidate) => candidate.message).join('\n')).toBeDefined()
          return line!
        }, WAIT),
      problems: () => lines.filter(({ level }) => level === 'warn' || level === 'error'),
    }
  }

  await post(`${STORAGE}/storageclasses`, {
    metadata: { name: 'fast' },
    provisioner: DRIVER,
    allowVolumeExpansion: true,
  })
  return {
    api,
    fake,
    flags: allFlags,
    post,
    startSidecar,
    createClaim: (name: string) =>
      post(CLAIMS, {
        metadata: { name },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
          storageClassName: 'fast',
        },
      }),
    waitUntil: (path: string, check: (object: Json) => void) =>
      vi.waitFor(async () => {
        const { status, json } = await api.get(path)
        expect(status).toBe(200)
        check(json)
        return json
      }, WAIT),
    waitUntilDeleted: (path: string) => vi.waitFor(async () => expect((await api.get(path)).status).toBe(404), WAIT),
    callsOf: (method: string) => fake.record.calls.filter((call) => call.method === method),
    holdLease: (name: string, holderIdentity: string) =>
      post(LEASES, {
        metadata: { name },
        spec: { holderIdentity, leaseDurationSeconds: 15, renewTime: new Date().toISOString().replace('Z', '000Z') },
      }),
  }
}

const expectBound = ({ status }: Json) => expect(status.phase).toBe('Bound')

describe('stowage sidecar', () => {
  it('PLUS-5 SYS-5 SYS-9 provisions, monitors, attaches, expands, modifies and deletes volumes with the role that is printed for it', async () => {
    const segments = { zone: 'a' }
    const pools = [{ name: 'pool', capacityBytes: 100 * GI, segments }]
    const capacity = { enableCapacity: 'true', capacityOwnerrefLevel: '-1', capacityForImmediateBinding: 'true' }
    const cluster = await startCluster({
      driver: {
        pools,
        nodes: [{ id: 'node-1', segments }],
        controller: [...fakeSettings().controller, 'VOLUME_CONDITION'],
      },
      flags: { ...capacity, leaderElection: 'true', httpEndpoint: '127.0.0.1:0', listVolumesInterval: '100ms' },
    })
    const { api, post, waitUntil, waitUntilDeleted, createClaim, callsOf } = cluster
    await post('/api/v1/nodes', { metadata: { name: 'node-1', labels: segments } })
    await post(`${STORAGE}/csinodes`, {
      metadata: { name: 'node-1' },
      spec: { drivers: [{ name: DRIVER, nodeID: 'node-1', topologyKeys: ['zone'] }] },
    })
    const sidecar = cluster.startSidecar()
    await createClaim('orders')
    const { spec } = await waitUntil(`${CLAIMS}/orders`, expectBound)
    await waitUntil(`${STORAGE}/csistoragecapacities`, ({ items }) => expect(items).toHaveLength(1))

    Object.values(cluster.fake.state.volumes)[0]!.condition = { abnormal: true, message: 'disk 3 is broken' }
    await waitUntil(EVENTS, ({ items }) =>
      expect(items.map(({ reason }: Json) => reason)).toContain('VolumeConditionAbnormal'),
    )

    await post(`${STORAGE}/volumeattachments`, {
      metadata: { name: 'orders-on-node-1' },
      spec: { attacher: DRIVER, nodeName: 'node-1', source: { persistentVolumeName: spec.volumeName } },
    })
    await waitUntil(`${STORAGE}/volumeattachments/orders-on-node-1`, ({ status }) => expect(status.attached).toBe(true))

    const gold = { metadata: { name: 'gold' }, driverName: DRIVER, parameters: { iops: '100' } }
    await post(`${STORAGE}/volumeattributesclasses`, gold)
    const change = { spec: { resources: { requests: { storage: '2Gi' } }, volumeAttributesClassName: 'gold' } }
    expect((await api.patch(`${CLAIMS}/orders`, change, 'merge')).status).toBe(200)
    await waitUntil(`${CLAIMS}/orders`, ({ status }) => {
      expect(status.allocatedResourceStatuses?.storage).toBe('NodeResizePending')
      expect(status.currentVolumeAttributesClassName).toBe('gold')
    })

    await api.delete(`${STORAGE}/volumeattachments/orders-on-node-1`)
    await waitUntilDeleted(`${STORAGE}/volumeattachments/orders-on-node-1`)
    await api.delete(`${CLAIMS}/orders`)
    await waitUntilDeleted(`${VOLUMES}/${spec.volumeName}`)
    for (const method of ['ControllerPublishVolume', 'ControllerUnpublishVolume', 'DeleteVolume']) {
      expect(callsOf(method), method).toHaveLength(1)
    }
    expect(Object.keys(cluster.fake.state.volumes)).toEqual([])

    const { items } = (await api.get(LEASES)).json
    expect(items.map(({ metadata }: Json) => metadata.name)).toEqual([OWN_LEASE])
    const { fields } = await sidecar.waitForLine('started')
    const metrics = await (await fetch(`${fields.monitoring}/metrics`)).text()
    for (const queue of ['claims', 'volumes', 'csi-attacher-va', `${DRIVER}-pvc`, 'csistoragecapacity']) {
      expect(metrics).toContain(`workqueue_depth{name="${queue}"}`)
    }
    expect(metrics).toContain(`leader_election_master_status{name="${OWN_LEASE}"} 1`)
    expect(sidecar.problems()).toEqual([])
  })

  it('PLUS-5 runs the controllers that --controllers selects and the driver supports', async () => {
    const cluster = await startCluster({ driver: { controller: ['CREATE_DELETE_VOLUME'], node: [] } })
    const sidecar = cluster.startSidecar({ controllers: '-attacher' })
    const { fields } = await sidecar.waitForLine('controllers selected')
    expect(fields).toMatchObject({
      controllers: ['provisioner'],
      unsupported: ['resizer', 'modifier', 'health-monitor'],
    })
    await cluster.createClaim('orders')
    await cluster.waitUntil(`${CLAIMS}/orders`, expectBound)
    const namedSidecar = cluster.startSidecar({ controllers: 'resizer' })
    await expect(namedSidecar.running).rejects.toThrow(/^--controllers resizer: .* cannot change volumes/)
  })

  it('SYS-8 does not lead while an upstream sidecar holds its lease, and logs the lease and the holder', async () => {
    const cluster = await startCluster({ flags: { leaderElection: 'true' } })
    await cluster.holdLease(UPSTREAM_LEASES.attacher, 'csi-driver-0')
    const sidecar = cluster.startSidecar()
    const { fields } = await sidecar.waitForLine(
      'refusing to lead: another program that does the same work holds its lease',
    )
    expect(fields).toEqual({ lease: `default/${UPSTREAM_LEASES.attacher}`, holder: 'csi-driver-0' })
    expect((await cluster.api.get(`${LEASES}/${OWN_LEASE}`)).status).toBe(404)

    const sidecarWithoutAttacher = cluster.startSidecar({ controllers: '-attacher' })
    await sidecarWithoutAttacher.waitForLine('leading')
    await cluster.createClaim('orders')
    await cluster.waitUntil(`${CLAIMS}/orders`, expectBound)
  })

  it('SYS-8 holds the leases of the upstream sidecars too with --hold-upstream-leases, and releases all when it stops', async () => {
    const cluster = await startCluster({ flags: { leaderElection: 'true', holdUpstreamLeases: 'true' } })
    const sidecar = cluster.startSidecar()
    await cluster.createClaim('orders')
    await cluster.waitUntil(`${CLAIMS}/orders`, expectBound)
    const holders = async () => {
      const { items } = (await cluster.api.get(LEASES)).json
      return Object.fromEntries(items.map(({ metadata, spec }: Json) => [metadata.name, spec.holderIdentity]))
    }
    const names = [OWN_LEASE, ...Object.values(UPSTREAM_LEASES)].sort()
    const holderOfLease = await holders()
    expect(Object.keys(holderOfLease).sort()).toEqual(names)
    expect(new Set(Object.values(holderOfLease)).size).toBe(1)
    expect(holderOfLease[OWN_LEASE]).not.toBe('')
    await sidecar.stop()
    expect(await holders()).toEqual(Object.fromEntries(names.map((name) => [name, ''])))
  })

  it('SYS-8 does not lead with --hold-upstream-leases while an upstream sidecar holds one of them', async () => {
    const cluster = await startCluster({ flags: { leaderElection: 'true', holdUpstreamLeases: 'true' } })
    await cluster.holdLease(UPSTREAM_LEASES.resizer, 'csi-driver-0')
    const sidecar = cluster.startSidecar()
    const { fields } = await sidecar.waitForLine('standing by: another process holds the lease')
    expect(fields).toEqual({ lease: `default/${UPSTREAM_LEASES.resizer}`, holder: 'csi-driver-0' })
    await cluster.createClaim('orders')
    expect(cluster.callsOf('CreateVolume')).toEqual([])
  })

  it('SYS-29 logs that it sends fewer requests at a time when the API server responds with 429', async () => {
    const authorizer: ServerFixtureOptions['authorizer'] = {
      authorize({ user, verb }) {
        if (user.name === WORKER && verb === 'patch') throw new ApiError(429, 'TooManyRequests', 'try again later')
        return { allowed: true }
      },
    }
    const cluster = await startCluster({ server: { authenticator: SERVER.authenticator!, authorizer } })
    const sidecar = cluster.startSidecar()
    await cluster.createClaim('orders')
    await sidecar.waitForLine('the API server is overloaded; sending fewer requests at a time')
  })

  it('PLUS-5 detaches a volume while CreateVolume hangs for more claims than the sidecar has workers', async () => {
    const cluster = await startCluster({ flags: { workerThreads: '20' } })
    const { post, createClaim, waitUntil, fake } = cluster
    const drivers = [{ name: DRIVER, nodeID: 'node-1', topologyKeys: [] }]
    await post(`${STORAGE}/csinodes`, { metadata: { name: 'node-1' }, spec: { drivers } })
    cluster.startSidecar()
    await createClaim('orders')
    const { spec } = await waitUntil(`${CLAIMS}/orders`, expectBound)
    const attachment = `${STORAGE}/volumeattachments/orders-on-node-1`
    await post(`${STORAGE}/volumeattachments`, {
      metadata: { name: 'orders-on-node-1' },
      spec: { attacher: DRIVER, nodeName: 'node-1', source: { persistentVolumeName: spec.volumeName } },
    })
    await waitUntil(attachment, ({ status }) => expect(status.attached).toBe(true))

    fake.script.setRules([{ method: 'CreateVolume', effect: { do: 'hang' } }])
    for (let i = 0; i < 30; i++) await createClaim(`many-${i}`)
    // Of the 20 workers, those that are not reserved for other queues hang.
    await vi.waitFor(() => expect(fake.script.hangingCount).toBeGreaterThan(10), WAIT)
    await cluster.api.delete(attachment)
    await cluster.waitUntilDeleted(attachment)
    expect(fake.script.hangingCount).toBeLessThan(20)
    expect(cluster.callsOf('ControllerUnpublishVolume')).toHaveLength(1)
    fake.script.setRules([])
    fake.script.release()
  })

  it('fails with an error that occurs after the stop signal', async () => {
    const cluster = await startCluster()
    const stop = new AbortController()
    const deps = { clock: systemClock(), random: systemRandom(), log: silentLog, signal: stop.signal, env: {} }
    const sidecarRun = runSidecar(
      { ...deps, settings: readSidecarSettings(cluster.flags), write: () => {} },
      {
        userAgent: 'test',
        components: [],
        createMetrics: () => ({}),
        leasesOf: () => ({ name: 'test' }),
        partsFor() {
          stop.abort()
          throw new Error('work was abandoned')
        },
      },
    )
    await expect(sidecarRun).rejects.toThrow('work was abandoned')
  })

  it('stops without an error while it waits for the driver', async () => {
    const cluster = await startCluster()
    const sidecar = cluster.startSidecar({ csiAddress: '/no/such/driver.sock' })
    await sidecar.waitForLine('waiting for the CSI driver to be ready')
    await sidecar.stop()
  })

  it('PLUS-5 with --node-deployment provisions a claim for its own node, and does not change attachments to other nodes', async () => {
    const segments = { zone: 'a' }
    const cluster = await startCluster({
      driver: {
        pools: [{ name: 'pool', capacityBytes: 100 * GI, segments }],
        nodes: [{ id: 'node-1', segments }],
      },
      env: { NODE_NAME: 'node-1', NAMESPACE: 'default' },
      flags: { nodeDeployment: 'true', nodeDeploymentBaseDelay: '10ms', immediateTopology: 'false' },
    })
    const { post, waitUntil, createClaim } = cluster
    for (const name of ['node-1', 'node-2']) {
      const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: ['zone'] }]
      await post(`${STORAGE}/csinodes`, { metadata: { name }, spec: { drivers } })
    }
    cluster.startSidecar()
    await createClaim('orders')
    const { spec, metadata } = await waitUntil(`${CLAIMS}/orders`, expectBound)
    expect(metadata.annotations['volume.kubernetes.io/selected-node']).toBe('node-1')
    for (const nodeName of ['node-2', 'node-1']) {
      await post(`${STORAGE}/volumeattachments`, {
        metadata: { name: `on-${nodeName}` },
        spec: { attacher: DRIVER, nodeName, source: { persistentVolumeName: spec.volumeName } },
      })
    }
    await waitUntil(`${STORAGE}/volumeattachments/on-node-1`, ({ status }) => expect(status.attached).toBe(true))
    const { json } = await cluster.api.get(`${STORAGE}/volumeattachments/on-node-2`)
    expect(json.status?.attached).not.toBe(true)
    expect(json.status?.attachError).toBeUndefined()
  })
})
