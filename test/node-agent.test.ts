// The node agent with the local driver on a real machine: loop devices, mounts and processes. Pods write to their volumes
// and read what others wrote; the successor of a killed agent completes its work; nothing is left at the end.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
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
import { createHostDisk } from '../src/nodeagent/disk/host-disk.ts'
import { createAgentMetrics, createNodeAgent, type RunningNodeAgent, startNodeAgent } from '../src/nodeagent/index.ts'
import { createCacheSet } from '../src/runtime/index.ts'
import { probeThisMachine, skipReason } from './allowed-skips.ts'

const PODS = '/api/v1/namespaces/default/pods'
const skipped = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs', 'ext4'])

describe.skipIf(skipped)(`a node with the local driver${skipped ? ` (${skipped})` : ''}`, () => {
  const clock = systemClock()
  let server: ServerFixture
  let client: Client
  let driver: DriverFixture
  let root: string
  let registry: Registry
  let abort: AbortController
  let running: RunningNodeAgent | undefined

  beforeEach(async () => {
    server = await createServerFixture()
    client = inProcessClient(server.server.objects, SYSTEM_USER)
    driver = await startDriverFixture({ backend: 'loop' })
    root = join(driver.machine.pool, 'node')
    registry = new Registry()
    await need(
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
    running = await startNodeAgent({
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
    await running?.stopped
    running = undefined
  }

  async function aVolume(name: string, wanted: Parameters<DriverFixture['create']>[1] = {}): Promise<void> {
    const volumeHandle = await driver.create(name, wanted)
    const mode = wanted.isBlock ? { volumeMode: 'Block' } : {}
    const claim = await need(
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
    const here = { matchExpressions: [{ key: TOPOLOGY_KEY, operator: 'In', values: [NODE] }] }
    await need(
      server.post('/api/v1/persistentvolumes', {
        metadata: { name: `pv-${name}` },
        spec: {
          capacity: { storage: '320Mi', iops: '1000' },
          accessModes: ['ReadWriteOnce'],
          claimRef: { namespace: 'default', name, uid: claim.metadata.uid },
          csi: { driver: DRIVER_NAME, volumeHandle, ...(wanted.isBlock ? {} : { fsType: wanted.fsType ?? 'xfs' }) },
          nodeAffinity: { required: { nodeSelectorTerms: [here] } },
          ...mode,
        },
      }),
    )
    await need(
      server.patch(`/api/v1/namespaces/default/persistentvolumeclaims/${name}/status`, {
        status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '320Mi' } },
      }),
    )
  }

  async function aPod(name: string, claims: readonly string[], script: string, spec: object = {}): Promise<string> {
    const mounts = claims.map((claim) => ({ name: claim, mountPath: `/data/${claim}` }))
    const pod = await need(
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
    return pod.metadata.uid
  }
  const pod = async (name: string) => (await server.get(`${PODS}/${name}`)).json
  const untilPhase = (name: string, phase: string) =>
    until(async () => (await pod(name)).status?.phase === phase, `${name} to be ${phase}`)
  async function remove(name: string): Promise<void> {
    await server.delete(`${PODS}/${name}`)
    await until(async () => (await server.get(`${PODS}/${name}`)).status === 404, `${name} to be gone`)
  }
  async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
    const endMs = clock.monotonicMs() + 60_000
    while (!(await condition())) {
      if (clock.monotonicMs() < endMs) await clock.sleep(20)
      else {
        const events = (await server.get('/api/v1/events')).json.items.map(({ message }: any) => message)
        throw new Error(`still waiting for: ${what}; ${JSON.stringify([running?.agent.standings(), events])}`)
      }
    }
  }
  const mountsLeft = async () =>
    (await driver.machine.host.mounts.list()).map(({ target }) => target).filter((target) => target.startsWith(root))
  /** A pod that has ended may be deleted before its volumes are unmounted. */
  const untilNothingIsLeft = () =>
    until(
      async () => (await mountsLeft()).length === 0 && (await loopsLeft()).length === 0 && !(await hasPods()),
      'mounts, loop devices and directories of pods to go',
    )
  const loopsLeft = async () =>
    (await driver.machine.host.loops.list()).filter(({ file }) => file.startsWith(driver.machine.pool))

  it('SYS-7 keeps data for the next pod on the same claim, and leaves nothing mounted at the end', async () => {
    await start()
    await aVolume('orders')
    await aVolume('logs', { fsType: 'ext4' })
    await aPod('writer', ['orders', 'logs'], 'echo 42 > /data/orders/total && echo fine > /data/logs/log && sync')
    await untilPhase('writer', 'Succeeded')
    await remove('writer')
    const uid = await aPod('reader', ['orders', 'logs'], 'cat /data/orders/total /data/logs/log; sleep 1000')
    await untilPhase('reader', 'Running')
    const log = join(root, 'pods', uid, 'containers', 'main', '0', 'log')
    await until(async () => (await readFile(log, 'utf8')) === '42\nfine\n', 'the reader to read')
    expect((await mountsLeft()).length).toBe(4)
    await remove('reader')
    await untilNothingIsLeft()
  })

  it('SYS-7 PIO-8 reports volume statistics, and IO beside its limits', async () => {
    await start()
    await aVolume('orders')
    await aPod('writer', ['orders'], 'while :; do head -c 4096 /dev/zero >> /data/orders/f; sync; sleep 0.01; done')
    await untilPhase('writer', 'Running')
    const value = async (name: string, more = '') => {
      const line = (await registry.metrics())
        .split('\n')
        .find((one) => one.startsWith(`${name}{`) && one.includes(more))
      return line === undefined ? undefined : Number(line.split(' ').at(-1))
    }
    await until(async () => (await value('kubelet_volume_stats_capacity_bytes')) !== undefined, 'stats')
    expect(await value('kubelet_volume_stats_capacity_bytes')).toBeGreaterThan(200 * 1024 * 1024)
    expect(await value('kubelet_volume_stats_inodes')).toBeGreaterThan(0)
    const writes = () => value('stowage_volume_iops_used', 'direction="write"')
    await until(async () => ((await writes()) ?? 0) > 0, 'writes to be counted')
    const left = await value('stowage_volume_iops_available', 'direction="write"')
    expect(left).toBe(Math.max(0, 1_000 - (await writes())!))
    expect(await value('stowage_volume_throughput_used_bytes', 'direction="write"')).toBeGreaterThan(0)
    expect(await registry.metrics()).toContain('method_name="/csi.v1.Node/NodeStageVolume",grpc_status_code="OK"')
    await remove('writer')
    await until(async () => (await value('kubelet_volume_stats_capacity_bytes')) === undefined, 'the stats to go')
  })

  it('SYS-7 publishes a block volume as a device at the path of the pod', async () => {
    await start()
    await aVolume('raw', { isBlock: true })
    const device = { volumeMounts: [], volumeDevices: [{ name: 'raw', devicePath: '/dev/mine' }] }
    const script = 'printf stowage > /dev/mine && sync && test -b /dev/mine'
    const containers = [{ name: 'main', image: 'none', command: ['sh', '-c', script], ...device }]
    await aPod('db', ['raw'], '', { containers })
    await untilPhase('db', 'Succeeded')
    await remove('db')
    await aPod('next', ['raw'], '', {
      containers: [{ ...containers[0], command: ['sh', '-c', '[ "$(head -c 7 /dev/mine)" = stowage ]'] }],
    })
    await untilPhase('next', 'Succeeded')
    await remove('next')
    await untilNothingIsLeft()
  })

  it('SYS-7 completes the mount after a kill between stage and publish, with the data intact', async () => {
    await mkdir(root, { recursive: true })
    await writeFile(join(root, 'agent-id'), 'one\n')
    await aVolume('orders')
    await start()
    await aPod('writer', ['orders'], 'echo 42 > /data/orders/total')
    await untilPhase('writer', 'Succeeded')
    await remove('writer')
    await untilNothingIsLeft()
    await stop()

    const doomed = await startDoomedAgent()
    await aPod('reader', ['orders'], 'cat /data/orders/total; sleep 1000')
    await doomed.died
    expect((await mountsLeft()).length).toBe(1)
    expect((await pod('reader')).status.phase).toBe('Pending')
    await start()
    await untilPhase('reader', 'Running')
    await remove('reader')
    await untilNothingIsLeft()
  })

  /** Settles when the agent has crashed: after its first stage, before its first publish. */
  async function startDoomedAgent(): Promise<{ readonly died: Promise<void> }> {
    const run = createRun({ clock })
    const over = new AbortController()
    const common = { clock, random: Math.random, log: silentLog, client }
    const caches = createCacheSet(common)
    const isDead = new Promise<void>((died) => {
      const agent = createNodeAgent({
        ...common,
        caches,
        nodeName: NODE,
        identity: `${NODE}_one`,
        root,
        metrics: createAgentMetrics(new Registry(), clock),
        machine: { hostname: 'm', address: '', os: 'linux', arch: '', cpus: 1, memoryBytes: 1 << 30, ...BARE },
        disk: createHostDisk({ mounts: createMounts({ run }), run }),
        plugins: {
          directory: { list: async () => [], watch: () => () => {} },
          calls: { getInfo: () => Promise.reject(new Error('no such plugin')), notify: async () => {} },
        },
        driverSockets: [socket()],
        connect(address) {
          const csi = connectDriver({ address, clock, log: silentLog })
          const nodePublishVolume = () => {
            over.abort()
            died()
            return new Promise<never>(() => {})
          }
          return { ...csi, node: { ...csi.node, nodePublishVolume } }
        },
        version: 'v0.0.0',
      })
      void agent.run(over.signal)
    })
    await caches.whenAnswered(over.signal)
    return { died: isDead.then(() => caches.stop()) }
  }
  const BARE = { kernel: '', system: '', machineId: '', bootId: '' }
  const hasPods = async () => (await driver.machine.run('ls', [join(root, 'pods')])).stdout.trim() !== ''
})

async function need(answer: ReturnType<ServerFixture['post']>): Promise<any> {
  const { status, json } = await answer
  if (status >= 300) throw new Error(`${status}: ${json.message}`)
  return json
}
