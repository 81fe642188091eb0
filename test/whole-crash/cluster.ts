// The system as it runs on several machines, each component in its own process: the server on its store, two replicas each
// of controllers and scheduler that elect a leader, and on each of two nodes a driver with real loop devices, an agent, a
// provisioner and two resizers. Every component can be killed at any moment and restarted.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createDaemon, type Daemon } from '../helpers/daemon.ts'
import { type RunningServer, startServer } from '../helpers/server.ts'

export interface Component {
  /** `agent left`. */
  readonly name: string
  /** `agent`. */
  readonly kind: string
  /** Its node; absent for the machine of the server. */
  readonly node?: string
  start(): Promise<void>
  kill(): Promise<void>
  log(): string
}

export interface Cluster {
  readonly dir: string
  readonly components: readonly Component[]
  /** The current server process, or the last one. */
  server(): RunningServer
  start(): Promise<void>
  stop(): Promise<void>
  /** Components that exited without being killed. */
  unexpectedExits(): string[]
}

export const NODES = ['left', 'right']
export const DRIVER = 'local.csi.stowage.dev'

export const socketOf = (dir: string, node: string): string => join(dir, node, 'csi.sock')
export const poolOf = (dir: string, node: string): string => join(dir, node, 'pool')
export const agentDirOf = (dir: string, node: string): string => join(dir, node, 'agent')

/** Watches must be able to resume from the first revision of a run. */
const HISTORY = ['--history-minutes', '60']
const ELECTION = ['--leader-election-lease-duration', '4s']
const SIDECAR_ELECTION = [
  ...['--leader-election', '--leader-election-namespace', 'kube-system', '--leader-election-lease-duration', '4s'],
  ...['--leader-election-renew-deadline', '3s', '--leader-election-retry-period', '500ms'],
]
const RETRIES = ['--retry-interval-start', '200ms', '--retry-interval-max', '2s', '--kube-api-qps', '-1']

export async function createCluster(dir: string): Promise<Cluster> {
  let server: RunningServer
  let isServerUp = false
  const serverMishaps: string[] = []
  const startServerAt = async (port: number) => {
    const flags = ['--log-level', 'warn', '--listen', `127.0.0.1:${port}`, ...HISTORY]
    server = await startServer({ dataDir: join(dir, 'data'), command: 'server', flags })
    isServerUp = true
  }
  await startServerAt(0)
  const port = Number(new URL(server!.url).port)
  const serverComponent: Component = {
    name: 'server',
    kind: 'server',
    log: () => server.log(),
    start: () => startServerAt(port).catch((error: Error) => void serverMishaps.push(error.message)),
    async kill() {
      if (!isServerUp) return
      isServerUp = false
      if (!isAlive(server.pid)) serverMishaps.push(`the server ended by itself: ${server.log().slice(-1_000)}`)
      await server.kill()
    },
  }

  const kubeconfig = ['--kubeconfig', server!.kubeconfig]
  const common = ['--log-level', 'debug'] // includes every driver call, for debugging
  const isStarted = ({ stderr }: { stderr: string }) => stderr.includes('"started"')
  const daemons: { readonly daemon: Daemon; readonly node?: string }[] = []
  for (const replica of ['1', '2']) {
    for (const command of ['controllers', 'scheduler']) {
      const args = [command, ...kubeconfig, ...ELECTION, ...common]
      daemons.push({ daemon: await createDaemon({ name: `${command} ${replica}`, args, isReady: isStarted }) })
    }
  }
  for (const node of NODES) {
    await mkdir(join(dir, node))
    for (const daemon of await daemonsOf(node)) daemons.push({ daemon, node })
  }

  async function daemonsOf(node: string): Promise<Daemon[]> {
    const socket = socketOf(dir, node)
    const env = { NODE_NAME: node, NAMESPACE: 'kube-system' }
    const resizer = (replica: string) =>
      createDaemon({
        name: `resizer ${node} ${replica}`,
        args: [
          ...['resizer', ...kubeconfig, '--csi-address', socket, '--node-deployment', ...SIDECAR_ELECTION],
          ...[...RETRIES, ...common],
        ],
        env,
        isReady: isStarted,
      })
    return Promise.all([
      createDaemon({
        name: `driver ${node}`,
        args: [
          ...['driver', '--endpoint', `unix://${socket}`, '--node-id', node, '--pool', poolOf(dir, node)],
          ...['--pool-size', '8Gi', '--backend', 'loop', ...common],
        ],
      }),
      createDaemon({
        name: `agent ${node}`,
        args: [
          ...['node', ...kubeconfig, '--node-name', node, '--root-dir', agentDirOf(dir, node)],
          ...['--driver-socket', socket, ...common],
        ],
      }),
      createDaemon({
        name: `provisioner ${node}`,
        args: [
          ...['provisioner', ...kubeconfig, '--csi-address', socket, '--node-deployment', '--enable-capacity'],
          ...['--capacity-ownerref-level', '-1', '--kube-api-capacity-qps', '-1'],
          ...['--node-deployment-base-delay', '200ms', '--node-deployment-max-delay', '2s', ...RETRIES, ...common],
        ],
        env,
        isReady: isStarted,
      }),
      resizer('1'),
      resizer('2'),
    ])
  }

  return {
    dir,
    server: () => server,
    components: [
      serverComponent,
      ...daemons.map(({ daemon, node }): Component => {
        const { name, start, kill, log } = daemon
        return { name, kind: name.split(' ')[0]!, ...(node ? { node } : {}), start, kill, log }
      }),
    ],
    async start() {
      await Promise.all(daemons.map(({ daemon }) => daemon.start()))
    },
    async stop() {
      await Promise.all(daemons.map(({ daemon }) => daemon.stop()))
      if (isServerUp) await server.stop()
    },
    unexpectedExits: () => [...serverMishaps, ...daemons.flatMap(({ daemon }) => daemon.unexpectedExits)],
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
