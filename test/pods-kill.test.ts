// Pods run on two nodes while agents, drivers and provisioners are killed at random moments, and the server once. Every
// pod must run or be deleted, find the data written before, and leave nothing behind.
//   stowage up            server, controllers and scheduler; no nodes
//   stowage driver, stowage provisioner, stowage node          three processes for each node
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { probeThisMachine, skipReason } from './allowed-skips.ts'
import { createDaemon, type Daemon } from './helpers/daemon.ts'
import { seededRandom } from './helpers/random.ts'
import { seedFrom } from './helpers/seed.ts'
import { type Reply, type RunningServer, startServer } from './helpers/server.ts'
import { type Traces, tracesBelow } from './helpers/traces.ts'

const skipped = skipReason(await probeThisMachine(), ['loop', 'mount', 'xfs'])
const PODS = Number(process.env.POD_LIVES ?? (process.env.CI ? 100 : 30))
const CALLERS = 10
const NODES = ['left', 'right']
/** From one kill to the next, and from a kill to the next start. */
const BETWEEN_KILLS_MS = 600
const DOWN_MS_MAX = 400
/** A pod that takes longer is stuck. */
const STUCK_MS = 120_000

const DRIVER = 'local.csi.stowage.dev'
const PATH = {
  pods: '/api/v1/namespaces/default/pods',
  claims: '/api/v1/namespaces/default/persistentvolumeclaims',
  volumes: '/api/v1/persistentvolumes',
  storage: '/apis/storage.k8s.io/v1',
}

describe.skipIf(skipped)(`pods under SIGKILL${skipped ? ` (${skipped})` : ''}`, () => {
  let dir: string
  let traces: Traces
  let server: RunningServer
  const daemons: Daemon[] = []

  const startUp = async (port = 0) => {
    const flags = ['--nodes', '0', '--log-level', 'warn', '--listen', `127.0.0.1:${port}`]
    server = await startServer({ dataDir: join(dir, 'data'), flags })
  }

  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'stowage-kill-')))
    traces = await tracesBelow(dir)
    await startUp()
    await ask('POST', `${PATH.storage}/csidrivers`, {
      metadata: { name: DRIVER },
      spec: { attachRequired: false, storageCapacity: true, podInfoOnMount: true },
    })
    await ask('POST', `${PATH.storage}/storageclasses`, {
      metadata: { name: 'local' },
      provisioner: DRIVER,
      volumeBindingMode: 'WaitForFirstConsumer',
      parameters: { provisioning: 'thin', overcommit: '10' },
    })
    for (const node of NODES) daemons.push(...(await daemonsOf(node)))
    await Promise.all(daemons.map((daemon) => daemon.start()))
  })
  afterAll(async () => {
    await Promise.all(daemons.map((daemon) => daemon.stop()))
    await server?.stop()
    await traces?.scrub()
    await rm(dir, { recursive: true, force: true })
  })

  async function daemonsOf(node: string): Promise<Daemon[]> {
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

  it(`SYS-7 leaves no device, mount or directory after ${PODS} pods, each of which ran or was deleted`, async () => {
    const seed = seedFrom('CRASH_SEED')
    const random = seededRandom(seed)
    const kills = new Map<string, number>()
    const counts = { ran: 0, foundItsData: 0, deletedEarly: 0, forced: 0, stayed: 0 }
    const staying: string[] = []
    let begun = 0
    let isOver = false

    const killing = (async () => {
      let isServerDue = true
      while (!isOver) {
        await pause(random() * BETWEEN_KILLS_MS)
        if (isOver) return
        if (isServerDue && begun >= PODS / 2) {
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
        await pause(random() * DOWN_MS_MAX)
        const isUp = daemon.start()
        if (random() < 0.7) await isUp // otherwise the next kill may hit it while it starts
      }
    })()
    const callers = Array.from({ length: CALLERS }, async () => {
      while (begun < PODS) await live(begun++)
    })
    try {
      await Promise.all(callers)
    } finally {
      isOver = true
      await killing
    }
    for (const name of staying) {
      await untilRunning(name)
      await end(name)
      await remove(`${PATH.claims}/${name}`)
    }
    await until('all volumes are gone', async () => (await ask('GET', PATH.volumes)).json.items.length === 0)
    await until('nothing is left', async () => (await leftovers()).length === 0).catch(() => {})
    expect(await leftovers(), `seed ${seed}`).toEqual([])
    expect(
      daemons.flatMap(({ unexpectedExits }) => unexpectedExits),
      `seed ${seed}: exited unexpectedly`,
    ).toEqual([])
    expect(daemons.filter((daemon) => daemon.log().includes('MaxListenersExceededWarning'))).toEqual([])
    const killed = [...kills].map(([kind, count]) => `${count} ${kind}`).join(', ')
    console.log(
      `pods under SIGKILL: seed ${seed}, ${PODS} pods: ${JSON.stringify(counts)}; killed: ${killed}; nothing left`,
    )
    expect(kills.get('server')).toBe(1)
    expect(kills.get('agent')! + kills.get('driver')!).toBeGreaterThan(PODS / 15)
    expect(counts.ran).toBeGreaterThan(PODS / 3)

    async function live(number: number): Promise<void> {
      const name = `pod-${number}`
      const chance = random()
      const isEphemeral = random() < 0.25
      if (!isEphemeral) await make(PATH.claims, { metadata: { name }, spec: CLAIM })
      await make(PATH.pods, aPod(name, isEphemeral ? EPHEMERAL : claimed(name)))
      if (chance < 0.3) {
        await pause(random() * 3_000)
        const isForced = chance < 0.1
        if (isForced) counts.forced++
        else counts.deletedEarly++
        await end(name, isForced ? { gracePeriodSeconds: 0 } : {})
      } else {
        const written = join(await untilRunning(name), 'name')
        await writeFile(written, name, { flush: true })
        counts.ran++
        if (chance > 0.9 && !isEphemeral) {
          counts.stayed++
          return void staying.push(name)
        }
        await end(name)
        if (!isEphemeral && chance > 0.6) {
          await make(PATH.pods, aPod(`${name}-next`, claimed(name)))
          const found = join(await untilRunning(`${name}-next`), 'name')
          expect(await readFile(found, 'utf8'), `seed ${seed}: ${name}`).toBe(name)
          counts.foundItsData++
          await end(`${name}-next`)
        }
      }
      if (!isEphemeral) await remove(`${PATH.claims}/${name}`)
    }
  }, 600_000)

  /** Where its volume is mounted, once it runs. */
  async function untilRunning(name: string): Promise<string> {
    let pod: any
    await until(`${name} runs`, async () => {
      pod = (await ask('GET', `${PATH.pods}/${name}`)).json
      return pod.status?.phase === 'Running'
    })
    const volumes = join(dir, pod.spec.nodeName, 'agent', 'pods', pod.metadata.uid, 'volumes', 'kubernetes.io~csi')
    const [volume = ''] = await readdir(volumes)
    return join(volumes, volume, 'mount')
  }

  async function end(name: string, options: object = {}): Promise<void> {
    const { status, text } = await ask('DELETE', `${PATH.pods}/${name}`, options)
    if (status >= 300 && status !== 404) throw new Error(text)
    await until(`${name} is gone`, async () => (await ask('GET', `${PATH.pods}/${name}`)).status === 404)
  }

  async function remove(path: string): Promise<void> {
    const { status, text } = await ask('DELETE', path)
    if (status >= 300 && status !== 404) throw new Error(text)
    await until(`${path} is gone`, async () => (await ask('GET', path)).status === 404)
  }

  async function make(path: string, object: object): Promise<void> {
    const { status, text } = await ask('POST', path, object)
    if (status >= 300 && status !== 409) throw new Error(text) // 409: created, but the response was lost with the server
  }

  /** Retries while the server is down. */
  async function ask(method: string, path: string, body?: object): Promise<Reply> {
    for (;;) {
      const reply = await server.call(method, path, body).catch(() => undefined)
      if (reply && reply.status < 500 && reply.status !== 429) return reply
      await pause(100)
    }
  }

  async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const giveUpMs = performance.now() + STUCK_MS
    while (!(await condition())) {
      if (performance.now() > giveUpMs) throw new Error(`not within ${STUCK_MS} ms: ${what}\n${await situation()}`)
      await pause(150)
    }
  }

  /** State for the reader of a failure. */
  async function situation(): Promise<string> {
    const { items: pods } = (await ask('GET', PATH.pods)).json
    const { items: volumes } = (await ask('GET', PATH.volumes)).json
    const { items: events } = (await ask('GET', '/api/v1/namespaces/default/events')).json
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
      ...(await leftovers()),
      ...daemons.map((daemon) => `${daemon.name}:\n${daemon.log().slice(-1_500)}`),
    ].join('\n')
  }

  async function leftovers(): Promise<string[]> {
    const places = NODES.flatMap((node) => [
      join(dir, node, 'agent', 'pods'),
      join(dir, node, 'agent', 'plugins', 'kubernetes.io', 'csi', DRIVER),
      ...['volumes', '.stowage/volumes', '.stowage/presences'].map((kind) => join(dir, node, 'pool', kind)),
    ])
    const found = await Promise.all(
      places.map(async (place) => (await readdir(place)).map((name) => join(place, name))),
    )
    return [...(await traces.list()), ...found.flat()]
  }
})

const CLAIM = {
  accessModes: ['ReadWriteOnce'],
  storageClassName: 'local',
  resources: { requests: { storage: '300Mi' } },
}
const EPHEMERAL = { ephemeral: { volumeClaimTemplate: { spec: CLAIM } } }
const claimed = (claimName: string) => ({ persistentVolumeClaim: { claimName } })

const aPod = (name: string, source: object) => ({
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
    volumes: [{ name: 'data', ...source }],
  },
})

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
