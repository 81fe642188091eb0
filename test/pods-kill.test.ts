// Runs pods on two nodes while agents, drivers and provisioners are killed at random, and the server once. Every pod must
// run or be deleted, and have the data that an earlier pod wrote. Nothing may be left on the nodes.
//   stowage up            server, controllers and scheduler; no nodes
//   stowage driver, stowage provisioner, stowage node          three processes for each node
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { createDaemon, type Daemon } from './helpers/daemon.ts'
import { findLeftoversBelow, type HostLeftovers } from './helpers/host-leftovers.ts'
import { seededRandom } from './helpers/random.ts'
import { seedFrom } from './helpers/seed.ts'
import { type ReceivedResponse, type RunningServer, startServer } from './helpers/server.ts'

const skipMessage = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])
const PODS = Number(process.env.POD_LIVES ?? (process.env.CI ? 100 : 30))
const CALLERS = 10
const NODES = ['left', 'right']
/** Longest time between kills, and longest time that a killed process stays down. */
const KILL_INTERVAL_MS_MAX = 600
const DOWNTIME_MS_MAX = 400
/** Time after which a pod counts as stuck. */
const STUCK_AFTER_MS = 120_000

const DRIVER = 'local.csi.stowage.dev'
const PATH = {
  pods: '/api/v1/namespaces/default/pods',
  claims: '/api/v1/namespaces/default/persistentvolumeclaims',
  volumes: '/api/v1/persistentvolumes',
  storage: '/apis/storage.k8s.io/v1',
}

describe.skipIf(skipMessage)(`pods under SIGKILL${skipMessage ? ` (${skipMessage})` : ''}`, () => {
  let dir: string
  let hostLeftovers: HostLeftovers
  let server: RunningServer
  const daemons: Daemon[] = []

  const startUp = async (port = 0) => {
    const flags = ['--nodes', '0', '--log-level', 'warn', '--listen', `127.0.0.1:${port}`]
    server = await startServer({ dataDir: join(dir, 'data'), flags })
  }

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-kill-')))
    hostLeftovers = await findLeftoversBelow(dir)
    await startUp()
    await call('POST', `${PATH.storage}/csidrivers`, {
      metadata: { name: DRIVER },
      spec: { attachRequired: false, storageCapacity: true, podInfoOnMount: true },
    })
    await call('POST', `${PATH.storage}/storageclasses`, {
      metadata: { name: 'local' },
      provisioner: DRIVER,
      volumeBindingMode: 'WaitForFirstConsumer',
      parameters: { provisioning: 'thin', overcommit: '10' },
    })
    for (const node of NODES) daemons.push(...(await createNodeDaemons(node)))
    await Promise.all(daemons.map((daemon) => daemon.start()))
  })
  afterAll(async () => {
    await Promise.all(daemons.map((daemon) => daemon.stop()))
    await server?.stop()
    await hostLeftovers?.remove()
    await rm(dir, { recursive: true, force: true })
  })

  async function createNodeDaemons(node: string): Promise<Daemon[]> {
    const home = join(dir, node)
    await mkdir(home)
    const socket = join(home, 'csi.sock')
    const common = ['--log-level', 'info']
    const kubeconfig = ['--kubeconfig', server.kubeconfig]
    return Promise.all([
      createDaemon({
        name: `driver ${node}`,
        args: [
          ...['driver', '--endpoint', `unix://${socket}`, '--node-id', node, '--pool', join(home, 'pool')],
          ...['--pool-size', '8Gi', '--backend', 'loop', ...common],
        ],
      }),
      createDaemon({
        name: `agent ${node}`,
        args: [
          ...['node', ...kubeconfig, '--node-name', node, '--root-dir', join(home, 'agent')],
          ...['--driver-socket', socket, ...common],
        ],
      }),
      createDaemon({
        name: `provisioner ${node}`,
        args: [
          ...['provisioner', ...kubeconfig, '--csi-address', socket, '--node-deployment', '--enable-capacity'],
          ...['--capacity-ownerref-level', '-1', '--kube-api-qps', '-1', '--kube-api-capacity-qps', '-1'],
          ...['--retry-interval-start', '200ms', '--retry-interval-max', '2s', ...common],
        ],
        env: { NODE_NAME: node, NAMESPACE: 'kube-system' },
        isReady: ({ stderr }) => stderr.includes('"started"'),
      }),
    ])
  }

  it(`SYS-7 all run or are deleted, and leave no device, mount or directory (${PODS} pods)`, async () => {
    const seed = seedFrom('CRASH_SEED')
    const random = seededRandom(seed)
    const kills = new Map<string, number>()
    const counts = { ran: 0, foundData: 0, deletedEarly: 0, forced: 0, stayed: 0 }
    const remainingPods: string[] = []
    let startedPods = 0
    let isStopped = false

    const killLoop = (async () => {
      let isServerDue = true
      while (!isStopped) {
        await pause(random() * KILL_INTERVAL_MS_MAX)
        if (isStopped) return
        if (isServerDue && startedPods >= PODS / 2) {
          isServerDue = false
          await server.kill()
          kills.set('server', 1)
          await startUp(Number(new URL(server.url).port))
          continue
        }
        const daemon = daemons[Math.floor(random() * daemons.length)]!
        await daemon.kill()
        const kind = daemon.name.split(' ')[0]!
        kills.set(kind, (kills.get(kind) ?? 0) + 1)
        await pause(random() * DOWNTIME_MS_MAX)
        const startup = daemon.start()
        if (random() < 0.7) await startup // otherwise the next kill may hit the starting process
      }
    })()
    const callers = Array.from({ length: CALLERS }, async () => {
      while (startedPods < PODS) await runPod(startedPods++)
    })
    try {
      await Promise.all(callers)
    } finally {
      isStopped = true
      await killLoop
    }
    for (const name of remainingPods) {
      await waitUntilRunning(name)
      await deletePod(name)
      await deleteAndWait(`${PATH.claims}/${name}`)
    }
    await waitUntil('all volumes are deleted', async () => (await call('GET', PATH.volumes)).json.items.length === 0)
    await waitUntil('nothing is left', async () => (await listLeftovers()).length === 0).catch(() => {})
    expect(await listLeftovers(), `seed ${seed}`).toEqual([])
    expect(
      daemons.flatMap(({ unexpectedExits }) => unexpectedExits),
      `seed ${seed}: exited unexpectedly`,
    ).toEqual([])
    expect(daemons.filter((daemon) => daemon.log().includes('MaxListenersExceededWarning'))).toEqual([])
    const killsText = [...kills].map(([kind, count]) => `${count} ${kind}`).join(', ')
    console.log(
      `pods under SIGKILL: seed ${seed}, ${PODS} pods: ${JSON.stringify(counts)}; killed: ${killsText}; nothing left`,
    )
    expect(kills.get('server')).toBe(1)
    expect(kills.get('agent')! + kills.get('driver')!).toBeGreaterThan(PODS / 15)
    expect(counts.ran).toBeGreaterThan(PODS / 3)

    async function runPod(number: number): Promise<void> {
      const name = `pod-${number}`
      const chance = random()
      const isEphemeral = random() < 0.25
      if (!isEphemeral) await create(PATH.claims, { metadata: { name }, spec: CLAIM })
      await create(PATH.pods, aPod(name, isEphemeral ? EPHEMERAL : claimSource(name)))
      if (chance < 0.3) {
        await pause(random() * 3_000)
        const isForced = chance < 0.1
        if (isForced) counts.forced++
        else counts.deletedEarly++
        await deletePod(name, isForced ? { gracePeriodSeconds: 0 } : {})
      } else {
        const path = join(await waitUntilRunning(name), 'name')
        await writeFile(path, name, { flush: true })
        counts.ran++
        if (chance > 0.9 && !isEphemeral) {
          counts.stayed++
          return void remainingPods.push(name)
        }
        await deletePod(name)
        if (!isEphemeral && chance > 0.6) {
          await create(PATH.pods, aPod(`${name}-next`, claimSource(name)))
          const nextPath = join(await waitUntilRunning(`${name}-next`), 'name')
          expect(await readFile(nextPath, 'utf8'), `seed ${seed}: ${name}`).toBe(name)
          counts.foundData++
          await deletePod(`${name}-next`)
        }
      }
      if (!isEphemeral) await deleteAndWait(`${PATH.claims}/${name}`)
    }
  }, 600_000)

  /** Waits until the pod runs, and returns the mount path of its volume. */
  async function waitUntilRunning(name: string): Promise<string> {
    let pod: any
    await waitUntil(`${name} runs`, async () => {
      pod = (await call('GET', `${PATH.pods}/${name}`)).json
      return pod.status?.phase === 'Running'
    })
    const volumes = join(dir, pod.spec.nodeName, 'agent', 'pods', pod.metadata.uid, 'volumes', 'kubernetes.io~csi')
    const [volume = ''] = await readdir(volumes)
    return join(volumes, volume, 'mount')
  }

  async function deletePod(name: string, options: object = {}): Promise<void> {
    const { status, text } = await call('DELETE', `${PATH.pods}/${name}`, options)
    if (status >= 300 && status !== 404) throw new Error(text)
    await waitUntil(`${name} is deleted`, async () => (await call('GET', `${PATH.pods}/${name}`)).status === 404)
  }

  async function deleteAndWait(path: string): Promise<void> {
    const { status, text } = await call('DELETE', path)
    if (status >= 300 && status !== 404) throw new Error(text)
    await waitUntil(`${path} is deleted`, async () => (await call('GET', path)).status === 404)
  }

  async function create(path: string, object: object): Promise<void> {
    const { status, text } = await call('POST', path, object)
    if (status >= 300 && status !== 409) throw new Error(text) // 409: an earlier attempt succeeded without a response
  }

  /** Sends a request, and retries while the server is down. */
  async function call(method: string, path: string, body?: object): Promise<ReceivedResponse> {
    for (;;) {
      const response = await server.call(method, path, body).catch(() => undefined)
      if (response && response.status < 500 && response.status !== 429) return response
      await pause(100)
    }
  }

  async function waitUntil(description: string, condition: () => Promise<boolean>): Promise<void> {
    const deadlineMs = performance.now() + STUCK_AFTER_MS
    while (!(await condition())) {
      if (performance.now() > deadlineMs)
        throw new Error(`timed out after ${STUCK_AFTER_MS} ms: ${description}\n${await describeState()}`)
      await pause(150)
    }
  }

  /** Returns the state of the system for a failed test's message. */
  async function describeState(): Promise<string> {
    const { items: pods } = (await call('GET', PATH.pods)).json
    const { items: volumes } = (await call('GET', PATH.volumes)).json
    const { items: events } = (await call('GET', '/api/v1/namespaces/default/events')).json
    return [
      ...pods.map(
        ({ metadata, spec, status }: any) => `${metadata.name} on ${spec.nodeName}: ${JSON.stringify(status)}`,
      ),
      ...volumes.map(({ metadata, status }: any) => `${metadata.name}: ${status.phase}`),
      ...events
        .filter(({ type }: any) => type === 'Warning')
        .sort((a: any, b: any) => Date.parse(a.lastTimestamp) - Date.parse(b.lastTimestamp))
        .slice(-20)
        .map(({ involvedObject, reason, message }: any) => `${involvedObject.name} ${reason}: ${message}`),
      ...(await listLeftovers()),
      ...daemons.map((daemon) => `${daemon.name}:\n${daemon.log().slice(-1_500)}`),
    ].join('\n')
  }

  async function listLeftovers(): Promise<string[]> {
    const directories = NODES.flatMap((node) => [
      join(dir, node, 'agent', 'pods'),
      join(dir, node, 'agent', 'plugins', 'kubernetes.io', 'csi', DRIVER),
      ...['volumes', '.stowage/volumes', '.stowage/presences'].map((kind) => join(dir, node, 'pool', kind)),
    ])
    const files = await Promise.all(directories.map(listFiles))
    return [...(await hostLeftovers.list()), ...files.flat()]
  }
})

const CLAIM = {
  accessModes: ['ReadWriteOnce'],
  storageClassName: 'local',
  resources: { requests: { storage: '300Mi' } },
}
const EPHEMERAL = { ephemeral: { volumeClaimTemplate: { spec: CLAIM } } }
const claimSource = (claimName: string) => ({ persistentVolumeClaim: { claimName } })

const aPod = (name: string, source: object) => ({
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
    volumes: [{ name: 'data', ...source }],
  },
})

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Returns the paths of the files in a directory, which does not exist until the node has its first volume. */
async function listFiles(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names.map((name) => join(directory, name))
}
