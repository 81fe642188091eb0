// Runs the whole system, each component in its own process: the server on its store, two replicas of the controllers and
// of the scheduler with leader election, and on each of two nodes a driver with loop devices, an agent, a provisioner and
// two resizers. Every component can be killed and restarted at any time. replicated-cluster.ts runs three servers instead.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createDaemon, type Daemon, type DaemonOptions } from '../helpers/daemon.ts'
import { type RunningServer, startServer } from '../helpers/server.ts'

export interface Component {
  /** For example `agent left`. */
  readonly name: string
  /** For example `agent`. */
  readonly kind: string
  /** Its node. Absent for components that do not run on a node. */
  readonly node?: string
  start(): Promise<void>
  kill(): Promise<void>
  /** Stops and continues the process with SIGSTOP and SIGCONT. Absent if it cannot be frozen. */
  readonly freeze?: Freeze
  /** Cuts the network connections of the component. Absent if it has none that can be cut. */
  readonly network?: NetworkCut
  log(): string
}

export interface Freeze {
  stop(): void
  continue(): void
}

export interface NetworkCut {
  /** Closes the connections and rejects new ones, or drops their data without closing them, where that is possible. */
  cut(how: 'closed' | 'silent'): void
  restore(): void
}

export interface Cluster {
  readonly dir: string
  readonly nodes: readonly string[]
  readonly components: readonly Component[]
  /** Returns the current server process, or the last one. */
  server(): RunningServer
  start(): Promise<void>
  stop(): Promise<void>
  /** Returns the components that exited without being killed. */
  unexpectedExits(): string[]
}

const NODES = ['left', 'right']
export const DRIVER = 'local.csi.stowage.dev'

export const socketOf = (dir: string, node: string): string => join(dir, node, 'csi.sock')
export const poolOf = (dir: string, node: string): string => join(dir, node, 'pool')
export const agentDirOf = (dir: string, node: string): string => join(dir, node, 'agent')

/** Keeps the history long enough to resume watches from a run's first revision. */
export const HISTORY = ['--history-minutes', '60']
const ELECTION = ['--leader-election-lease-duration', '4s']
const SIDECAR_ELECTION = [
  ...['--leader-election', '--leader-election-namespace', 'kube-system', '--leader-election-lease-duration', '4s'],
  ...['--leader-election-renew-deadline', '3s', '--leader-election-retry-period', '500ms'],
]
const RETRIES = ['--retry-interval-start', '200ms', '--retry-interval-max', '2s', '--kube-api-qps', '-1']

export async function createCluster(dir: string): Promise<Cluster> {
  let server: RunningServer
  let isServerRunning = false
  const serverFailures: string[] = []
  const startServerOnPort = async (port: number) => {
    const flags = ['--log-level', 'warn', '--listen', `127.0.0.1:${port}`, ...HISTORY]
    server = await startServer({ dataDir: join(dir, 'data'), command: 'server', flags })
    isServerRunning = true
  }
  await startServerOnPort(0)
  const port = Number(new URL(server!.url).port)
  const serverComponent: Component = {
    name: 'server',
    kind: 'server',
    log: () => server.log(),
    start: () => startServerOnPort(port).catch((error: Error) => void serverFailures.push(error.message)),
    async kill() {
      if (!isServerRunning) return
      isServerRunning = false
      if (!isAlive(server.pid)) serverFailures.push(`the server exited unexpectedly: ${server.log().slice(-1_000)}`)
      await server.kill()
    },
  }

  const daemons = await createDaemons(dir, NODES, async () => ({ file: server.kubeconfig }))
  return {
    dir,
    nodes: NODES,
    server: () => server,
    components: [serverComponent, ...daemons.components.map(({ freeze: _, ...component }) => component)],
    start: daemons.start,
    async stop() {
      await daemons.stop()
      if (isServerRunning) await server.stop()
    },
    unexpectedExits: () => [...serverFailures, ...daemons.unexpectedExits()],
  }
}

/** How a component reaches the API. */
export interface ApiAccess {
  /** Path of its kubeconfig. */
  readonly file: string
  readonly network?: NetworkCut
}

export interface DaemonComponents {
  readonly components: readonly Component[]
  start(): Promise<void>
  stop(): Promise<void>
  unexpectedExits(): string[]
}

/** Creates the components other than the servers: replicas of the controllers and the scheduler, and the components of the nodes. */
export async function createDaemons(
  dir: string,
  nodes: readonly string[],
  accessOf: (name: string) => Promise<ApiAccess>,
): Promise<DaemonComponents> {
  const common = ['--log-level', 'debug'] // includes every driver call
  const isStarted = ({ stderr }: { stderr: string }) => stderr.includes('"started"')
  const daemons: { readonly daemon: Daemon; readonly node?: string; readonly network?: NetworkCut }[] = []

  /** Adds a component that uses the API. `args` has the command first. */
  async function addApiDaemon(
    { args: [command = '', ...flags], ...options }: DaemonOptions,
    node?: string,
  ): Promise<void> {
    const { file, network } = await accessOf(options.name)
    const daemon = await createDaemon({ ...options, args: [command, '--kubeconfig', file, ...flags, ...common] })
    daemons.push({ daemon, ...(node ? { node } : {}), ...(network ? { network } : {}) })
  }

  for (const replica of ['1', '2']) {
    for (const command of ['controllers', 'scheduler'])
      await addApiDaemon({ name: `${command} ${replica}`, args: [command, ...ELECTION], isReady: isStarted })
  }
  for (const node of nodes) {
    await mkdir(join(dir, node))
    await addNodeDaemons(node)
  }

  async function addNodeDaemons(node: string): Promise<void> {
    const socket = socketOf(dir, node)
    const sidecar = { env: { NODE_NAME: node, NAMESPACE: 'kube-system' }, isReady: isStarted }
    const driver = await createDaemon({
      name: `driver ${node}`,
      args: [
        ...['driver', '--endpoint', `unix://${socket}`, '--node-id', node, '--pool', poolOf(dir, node)],
        ...['--pool-size', '8Gi', '--backend', 'loop', ...common],
      ],
    })
    daemons.push({ daemon: driver, node })
    await addApiDaemon(
      {
        name: `agent ${node}`,
        args: ['node', '--node-name', node, '--root-dir', agentDirOf(dir, node), '--driver-socket', socket],
      },
      node,
    )
    await addApiDaemon(
      {
        ...sidecar,
        name: `provisioner ${node}`,
        args: [
          ...['provisioner', '--csi-address', socket, '--node-deployment', '--enable-capacity'],
          ...['--capacity-ownerref-level', '-1', '--kube-api-capacity-qps', '-1'],
          ...['--node-deployment-base-delay', '200ms', '--node-deployment-max-delay', '2s', ...RETRIES],
        ],
      },
      node,
    )
    for (const replica of ['1', '2']) {
      await addApiDaemon(
        {
          ...sidecar,
          name: `resizer ${node} ${replica}`,
          args: ['resizer', '--csi-address', socket, '--node-deployment', ...SIDECAR_ELECTION, ...RETRIES],
        },
        node,
      )
    }
  }

  return {
    components: daemons.map(({ daemon: { name, start, kill, log, signal }, ...place }): Component => {
      const freeze = { stop: () => signal('SIGSTOP'), continue: () => signal('SIGCONT') }
      return { name, kind: name.split(' ')[0]!, ...place, start, kill, freeze, log }
    }),
    async start() {
      await Promise.all(daemons.map(({ daemon }) => daemon.start()))
    },
    async stop() {
      await Promise.all(daemons.map(({ daemon }) => daemon.stop()))
    },
    unexpectedExits: () => daemons.flatMap(({ daemon }) => daemon.unexpectedExits),
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
