// Tests the node agent with the local driver on loop devices.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { inProcessClient, SYSTEM_USER } from '../src/apiserver/index.ts'
import { createServerFixture, type ServerFixture } from '../src/apiserver/server.fixture.ts'
import { systemClock } from '../src/base/clock.ts'
import { silentLog } from '../src/base/log.ts'
import type { Client } from '../src/client/index.ts'
import { connectDriver } from '../src/csi/index.ts'
import { type DriverFixture, NODE, startDriverFixture, TOPOLOGY_KEY } from '../src/driver/driver.fixture.ts'
import { DRIVER_NAME } from '../src/driver/index.ts'
import { createMounts } from '../src/host/mounts.ts'
import { createRun } from '../src/host/run.ts'
import { readLog } from '../src/nodeagent/commands/logs/read-log.ts'
import { createHostDisk } from '../src/nodeagent/disk/host-disk.ts'
import { createAgentMetrics, createNodeAgent, type RunningNodeAgent, startNodeAgent } from '../src/nodeagent/index.ts'
import { createCacheSet } from '../src/runtime/index.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'

const PODS = '/api/v1/namespaces/default/pods'
const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'ext4'])

describe.skipIf(skipMessage)(`a node with the local driver${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  const clock = systemClock()
  let server: ServerFixture
  let client: Client
  let driver: DriverFixture
  let root: string
  let registry: Registry
  let abort: AbortController
  let runningAgent: RunningNodeAgent | undefined

  beforeEach(async () => {
    server = await createServerFixture()
    client = inProcessClient(server.server.objects, SYSTEM_USER)
    driver = await startDriverFixture({ backend: 'loop' })
    root = join(driver.machine.pool, 'node')
    registry = new Registry()
    await expectSuccess(
      server.post('/apis/storage.k8s.io/v1/csidrivers', {
        metadata: { name: DRIVER_NAME },
        spec: { attachRequired: false, podInfoOnMount: true },
      }),
    )
  })
  afterEach(async () => {
    await stop()
    await driver.dispose()
    await server.store.close()
  })

  const socket = () => join(driver.machine.pool, 'csi.sock')
  async function start(): Promise<void> {
    abort = new AbortController()
    registry = new Registry()
    runningAgent = await startNodeAgent({
      client,
      nodeName: NODE,
      root,
      driverSockets: [socket()],
      runCommands: true,
      version: 'v0.0.0',
      clock,
      random: Math.random,
      log: silentLog,
      registry,
      signal: abort.signal,
    })
  }
  async function stop(): Promise<void> {
    abort?.abort()
    await runningAgent?.stopped
    runningAgent = undefined
  }

  async function createVolume(name: string, options: Parameters<DriverFixture['create']>[1] = {}): Promise<void> {
    const volumeHandle = await driver.create(name, options)
    const mode = options.isBlock ? { volumeMode: 'Block' } : {}
    const claim = await expectSuccess(
      server.post('/api/v1/namespaces/default/persistentvolumeclaims', {
        metadata: { name },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '320Mi' } },
          storageClassName: '',
          volumeName: `pv-${name}`,
          ...mode,
        },
      }),
    )
    const nodeRequirement = { matchExpressions: [{ key: TOPOLOGY_KEY, operator: 'In', values: [NODE] }] }
    await expectSuccess(
      server.post('/api/v1/persistentvolumes', {
        metadata: { name: `pv-${name}` },
        spec: {
          capacity: { storage: '320Mi', iops: '1000' },
          accessModes: ['ReadWriteOnce'],
          claimRef: { namespace: 'default', name, uid: claim.metadata.uid },
          csi: { driver: DRIVER_NAME, volumeHandle, ...(options.isBlock ? {} : { fsType: options.fsType ?? 'xfs' }) },
          nodeAffinity: { required: { nodeSelectorTerms: [nodeRequirement] } },
          ...mode,
        },
      }),
    )
    await expectSuccess(
      server.patch(`/api/v1/namespaces/default/persistentvolumeclaims/${name}/status`, {
        status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '320Mi' } },
      }),
    )
  }

  async function createPod(
    name: string,
    claims: readonly string[],
    script: string,
    spec: object = {},
  ): Promise<string> {
    const mounts = claims.map((claim) => ({ name: claim, mountPath: `/data/${claim}` }))
    const createdPod = await expectSuccess(
      server.post(PODS, {
        metadata: { name },
        spec: {
          nodeName: NODE,
          restartPolicy: 'Never',
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'main', image: 'none', command: ['sh', '-c', script], volumeMounts: mounts }],
          volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
          ...spec,
        },
      }),
    )
    return createdPod.metadata.uid
  }
  const getPod = async (name: string) => (await server.get(`${PODS}/${name}`)).json
  const waitForPhase = (name: string, phase: string) =>
    pollUntil(async () => (await getPod(name)).status?.phase === phase, `${name} to be ${phase}`)
  async function deletePod(name: string): Promise<void> {
    await server.delete(`${PODS}/${name}`)
    await pollUntil(async () => (await server.get(`${PODS}/${name}`)).status === 404, `${name} to be deleted`)
  }
  async function pollUntil(condition: () => Promise<boolean>, description: string): Promise<void> {
    const endMs = clock.monotonicMs() + 60_000
    while (!(await condition())) {
      if (clock.monotonicMs() < endMs) await clock.sleep(20)
      else {
        const events = (await server.get('/api/v1/events')).json.items.map(({ message }: any) => message)
        throw new Error(
          `timed out waiting for: ${description}; ${JSON.stringify([runningAgent?.agent.queueStates(), events])}`,
        )
      }
    }
  }
  const listMounts = async () =>
    (await driver.machine.host.mounts.list()).map(({ target }) => target).filter((target) => target.startsWith(root))
  /** Waits for cleanup: a terminated pod may be deleted before its volumes are unmounted. */
  const waitUntilClean = () =>
    pollUntil(
      async () => (await listMounts()).length === 0 && (await listLoops()).length === 0 && !(await hasPods()),
      'mounts, loop devices and directories of pods to be removed',
    )
  const listLoops = async () =>
    (await driver.machine.host.loops.list()).filter(({ file }) => file.startsWith(driver.machine.pool))

  async function readLogText(path: string): Promise<string> {
    const chunks: Buffer[] = []
    for await (const chunk of readLog(path, {}, { signal: abort.signal })) chunks.push(chunk)
    return Buffer.concat(chunks).toString('utf8')
  }

  it('SYS-7 keeps data for the next pod on the same claim, and leaves nothing mounted at the end', async () => {
    await start()
    await createVolume('orders')
    await createVolume('logs', { fsType: 'ext4' })
    await createPod('writer', ['orders', 'logs'], 'echo 42 > /data/orders/total && echo fine > /data/logs/log && sync')
    await waitForPhase('writer', 'Succeeded')
    await deletePod('writer')
    const uid = await createPod('reader', ['orders', 'logs'], 'cat /data/orders/total /data/logs/log; sleep 1000')
    await waitForPhase('reader', 'Running')
    const log = join(root, 'pods', uid, 'containers', 'main', '0', 'log')
    await pollUntil(async () => (await readLogText(log)) === '42\nfine\n', 'the log of the reader')
    expect((await listMounts()).length).toBe(4)
    await deletePod('reader')
    await waitUntilClean()
  })

  it('SYS-7 PIO-8 reports volume statistics, IO and limits', async () => {
    await start()
    await createVolume('orders')
    await createPod(
      'writer',
      ['orders'],
      'while :; do head -c 4096 /dev/zero >> /data/orders/f; sync; sleep 0.01; done',
    )
    await waitForPhase('writer', 'Running')
    const readMetric = async (name: string, label = '') => {
      const line = (await registry.metrics())
        .split('\n')
        .find((sample) => sample.startsWith(`${name}{`) && sample.includes(label))
      return line === undefined ? undefined : Number(line.split(' ').at(-1))
    }
    await pollUntil(
      async () => (await readMetric('kubelet_volume_stats_capacity_bytes')) !== undefined,
      'volume statistics',
    )
    expect(await readMetric('kubelet_volume_stats_capacity_bytes')).toBeGreaterThan(200 * 1024 * 1024)
    expect(await readMetric('kubelet_volume_stats_inodes')).toBeGreaterThan(0)
    const readWriteIops = () => readMetric('stowage_volume_iops_used', 'direction="write"')
    await pollUntil(async () => ((await readWriteIops()) ?? 0) > 0, 'writes to be counted')
    const availableIops = await readMetric('stowage_volume_iops_available', 'direction="write"')
    expect(availableIops).toBe(Math.max(0, 1_000 - (await readWriteIops())!))
    expect(await readMetric('stowage_volume_throughput_used_bytes', 'direction="write"')).toBeGreaterThan(0)
    expect(await registry.metrics()).toContain('method_name="/csi.v1.Node/NodeStageVolume",grpc_status_code="OK"')
    await deletePod('writer')
    await pollUntil(
      async () => (await readMetric('kubelet_volume_stats_capacity_bytes')) === undefined,
      'the statistics to be removed',
    )
  })

  it("SYS-7 publishes a block volume as a device at the pod's path", async () => {
    await start()
    await createVolume('raw', { isBlock: true })
    const device = { volumeMounts: [], volumeDevices: [{ name: 'raw', devicePath: '/dev/data' }] }
    const script = 'printf stowage > /dev/data && sync && test -b /dev/data'
    const containers = [{ name: 'main', image: 'none', command: ['sh', '-c', script], ...device }]
    await createPod('db', ['raw'], '', { containers })
    await waitForPhase('db', 'Succeeded')
    await deletePod('db')
    await createPod('next', ['raw'], '', {
      containers: [{ ...containers[0], command: ['sh', '-c', '[ "$(head -c 7 /dev/data)" = stowage ]'] }],
    })
    await waitForPhase('next', 'Succeeded')
    await deletePod('next')
    await waitUntilClean()
  })

  it('SYS-7 completes the mount after a crash between stage and publish', async () => {
    await mkdir(root, { recursive: true })
    await writeFile(join(root, 'agent-id'), 'one\n')
    await createVolume('orders')
    await start()
    await createPod('writer', ['orders'], 'echo 42 > /data/orders/total')
    await waitForPhase('writer', 'Succeeded')
    await deletePod('writer')
    await waitUntilClean()
    await stop()

    const crashingAgent = await startCrashingAgent()
    await createPod('reader', ['orders'], 'cat /data/orders/total; sleep 1000')
    await crashingAgent.crashed
    expect((await listMounts()).length).toBe(1)
    expect((await getPod('reader')).status.phase).toBe('Pending')
    await start()
    await waitForPhase('reader', 'Running')
    await deletePod('reader')
    await waitUntilClean()
  })

  /** Starts an agent that crashes after its first stage, before its first publish. */
  async function startCrashingAgent(): Promise<{ readonly crashed: Promise<void> }> {
    const run = createRun({ clock })
    const crash = new AbortController()
    const common = { clock, random: Math.random, log: silentLog, client }
    const caches = createCacheSet(common)
    const crashed = new Promise<void>((resolve) => {
      const agent = createNodeAgent({
        ...common,
        caches,
        nodeName: NODE,
        identity: `${NODE}_one`,
        root,
        metrics: createAgentMetrics(new Registry(), clock),
        machine: {
          hostname: 'm',
          address: '',
          os: 'linux',
          arch: '',
          cpus: 1,
          memoryBytes: 1 << 30,
          ...UNKNOWN_SYSTEM,
        },
        disk: createHostDisk({ mounts: createMounts({ run }), run }),
        plugins: {
          directory: { list: async () => [], watch: () => () => {} },
          calls: { getInfo: () => Promise.reject(new Error('no such plugin')), notify: async () => {} },
        },
        driverSockets: [socket()],
        connect(address) {
          const csi = connectDriver({ address, clock, log: silentLog })
          const nodePublishVolume = () => {
            crash.abort()
            resolve()
            return new Promise<never>(() => {})
          }
          return { ...csi, node: { ...csi.node, nodePublishVolume } }
        },
        version: 'v0.0.0',
      })
      void agent.run(crash.signal)
    })
    await caches.whenSyncedOrNotServed(crash.signal)
    return { crashed: crashed.then(() => caches.stop()) }
  }
  const UNKNOWN_SYSTEM = { kernel: '', system: '', machineId: '', bootId: '' }
  const hasPods = async () => (await driver.machine.run('ls', [join(root, 'pods')])).stdout.trim() !== ''
})

async function expectSuccess(response: ReturnType<ServerFixture['post']>): Promise<any> {
  const { status, json } = await response
  if (status >= 300) throw new Error(`${status}: ${json.message}`)
  return json
}
