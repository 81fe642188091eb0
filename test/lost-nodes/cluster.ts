// Runs `stowage up` without nodes of its own and three nodes, each with its own processes: the local driver on loop devices, an
// agent that runs the commands of pods, and a sidecar. Each node reaches the server through its own proxy. A node can be powered
// off, crash with its mounts left behind, or be cut off from the server while its pods still write.
import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createDaemon, type Daemon } from '../helpers/daemon.ts'
import { findLeftoversBelow } from '../helpers/host-leftovers.ts'
import { runStowage } from '../helpers/run-stowage.ts'
import { type RunningServer, startServer } from '../helpers/server.ts'
import { startTcpProxy, type TcpProxy } from '../helpers/tcp-proxy.ts'
import { type SharedDriver, startSharedDriver } from './shared-driver.ts'

export const NODES = ['node-a', 'node-b', 'node-c']
export const LOCAL_DRIVER = 'local.csi.stowage.dev'
/** How long a node may be silent. Agents renew their leases every second. */
const GRACE = '4s'

export interface LostNodesCluster {
  readonly dir: string
  readonly server: RunningServer
  readonly shared: SharedDriver
  /** Nodes whose processes run. */
  readonly running: ReadonlySet<string>
  dirOf(node: string): string
  /** Kills all processes of the node, and removes its mounts and loop devices, as a power failure does. */
  powerOff(node: string): Promise<void>
  /** Kills all processes of the node. Its mounts and loop devices stay. */
  crash(node: string): Promise<void>
  /** Cuts the connections of the node to the server. Its processes continue. */
  cutOff(node: string): void
  reconnect(node: string): void
  /** Starts the processes of the node. Resolves when its agent is ready. */
  startNode(node: string): Promise<void>
  unexpectedExits(): string[]
  logs(): string
  stop(): Promise<void>
}

interface NodeParts {
  readonly driver: Daemon
  readonly agent: Daemon
  readonly sidecar: Daemon
  readonly proxy: TcpProxy
}

export async function startLostNodesCluster(dir: string): Promise<LostNodesCluster> {
  const shared = await startSharedDriver(dir, NODES)
  const server = await startServer({
    dataDir: join(dir, 'data'),
    flags: [
      '--log-level',
      'warn',
      '--no-console',
      '--node-monitor-grace-period',
      GRACE,
      '--driver-socket',
      shared.controllerSocket,
    ],
  })
  const dirOf = (node: string) => join(dir, node)
  const parts = new Map<string, NodeParts>()
  const running = new Set<string>()

  async function createParts(node: string): Promise<NodeParts> {
    await mkdir(dirOf(node))
    const socket = join(dirOf(node), 'csi.sock')
    const proxy = await startTcpProxy(new URL(server.url).host)
    const url = `https://${proxy.endpoint}`
    const tokenArgs = ['token', 'create', '--node', node, '--kubeconfig', server.kubeconfig, '-o', 'json']
    const { token, caCertHash } = JSON.parse((await runStowage(...tokenArgs)).stdout)
    const common = ['--log-level', 'info']
    return {
      proxy,
      driver: await createDaemon({
        name: `driver ${node}`,
        args: [
          ...['driver', '--endpoint', `unix://${socket}`, '--node-id', node, '--pool', join(dirOf(node), 'pool')],
          ...['--pool-size', '8Gi', '--backend', 'loop', ...common],
        ],
      }),
      agent: await createDaemon({
        name: `agent ${node}`,
        isReady: ({ stdout }) => stdout.includes('is ready'),
        args: [
          ...['node', '--node-name', node, '--root-dir', join(dirOf(node), 'agent'), '--node-lease-duration', GRACE],
          ...['--driver-socket', socket, '--driver-socket', shared.socketOf(node), '--run-commands'],
          ...[
            '--join',
            url,
            '--token',
            token,
            '--ca-cert-hash',
            caCertHash,
            '--stream-endpoint',
            '127.0.0.1:0',
            ...common,
          ],
        ],
      }),
      sidecar: await createDaemon({
        name: `sidecar ${node}`,
        env: { NODE_NAME: node, NAMESPACE: 'kube-system' },
        isReady: ({ stderr }) => stderr.includes('"started"'),
        args: [
          ...['sidecar', '--kubeconfig', server.kubeconfig, '--master', url, '--csi-address', socket],
          ...['--node-deployment', '--enable-capacity', '--capacity-ownerref-level', '-1'],
          ...[
            '--kube-api-capacity-qps',
            '-1',
            '--retry-interval-start',
            '200ms',
            '--retry-interval-max',
            '2s',
            ...common,
          ],
        ],
      }),
    }
  }

  async function startNode(node: string): Promise<void> {
    const { driver, agent, sidecar, proxy } = parts.get(node)!
    proxy.restore()
    running.add(node)
    await Promise.all([driver.start(), shared.startNode(node)])
    await Promise.all([agent.start(), sidecar.start()])
  }

  async function killProcesses(node: string): Promise<void> {
    const { driver, agent, sidecar } = parts.get(node)!
    await Promise.all([agent.kill(), driver.kill(), sidecar.kill()])
    await shared.stopNode(node)
    await killPodProcesses(dirOf(node))
    running.delete(node)
  }

  const cluster: LostNodesCluster = {
    dir,
    server,
    shared,
    running,
    dirOf,
    startNode,
    crash: killProcesses,
    async powerOff(node) {
      await killProcesses(node)
      shared.forgetMounts(node)
      const leftovers = await findLeftoversBelow(dirOf(node))
      while ((await leftovers.list()).length > 0) {
        await leftovers.remove().catch(() => pause(50)) // the kernel releases mounts of killed processes a little later
      }
    },
    cutOff: (node) => parts.get(node)!.proxy.cut(),
    reconnect: (node) => parts.get(node)!.proxy.restore(),
    unexpectedExits: () =>
      [...parts.values()].flatMap(({ driver, agent, sidecar }) =>
        [driver, agent, sidecar].flatMap((part) => part.unexpectedExits),
      ),
    logs: () =>
      [`--- server\n${server.log().slice(-4_000)}`]
        .concat(
          [...parts.values()].flatMap(({ agent, sidecar, driver }) =>
            [agent, sidecar, driver].map(({ name, log }) => `--- ${name}\n${log().slice(-3_000)}`),
          ),
        )
        .join('\n'),
    async stop() {
      for (const node of running) await cluster.powerOff(node)
      for (const { proxy } of parts.values()) await proxy.close()
      await server.stop()
      await shared.stop()
    },
  }
  try {
    await Promise.all(NODES.map(async (node) => parts.set(node, await createParts(node))))
    await Promise.all(NODES.map(startNode))
  } catch (error) {
    await cluster.stop()
    throw error
  }
  return cluster
}

/** Kills the processes of pods, and the processes that started them, whose arguments contain paths of the agent. */
export async function killPodProcesses(nodeDir: string): Promise<void> {
  const isOfNode = async (pid: string) => {
    const [args = '', env = ''] = await Promise.all(
      ['cmdline', 'environ'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
    )
    return args.includes(`${nodeDir}/`) || env.split('\0').includes(`NODE_DIR=${nodeDir}`)
  }
  for (;;) {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    const found = (await Promise.all(pids.map(async (pid) => ((await isOfNode(pid)) ? [Number(pid)] : [])))).flat()
    if (found.length === 0) return
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // it has exited
      }
    }
    await pause(20)
  }
}
