// Runs the replicated control plane: three etcd members and three servers behind a TCP load balancer, with the same controllers,
// schedulers and node components as cluster.ts, on three nodes. Every component except the drivers can be cut off from the
// network: etcd members reach each other, servers reach etcd, and the other components reach the load balancer through proxies of
// their own.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type RunningEtcd, startEtcd } from '../helpers/etcd.ts'
import { type LoadBalancer, startLoadBalancer } from '../helpers/load-balancer.ts'
import { type RunningServer, startServer } from '../helpers/server.ts'
import { startTcpProxy, type TcpProxy } from '../helpers/tcp-proxy.ts'
import { type Cluster, type Component, createDaemons, DRIVER, HISTORY, isAlive } from './cluster.ts'

const MEMBERS = 3
const SERVERS = ['1', '2', '3']
const NODES = ['left', 'middle', 'right']
/** The time after which the load balancer detects a server that does not respond. */
const HEALTH_CHECK_MS = 1_000

export async function createReplicatedCluster(dir: string, random: () => number): Promise<Cluster> {
  const etcd = await startEtcd({ members: MEMBERS, dir })
  const loadBalancer = await startLoadBalancer()
  const failures: string[] = []
  const servers: ReplicaServer[] = []
  // The first server creates the credentials that all share.
  for (const name of SERVERS) servers.push(await createServerReplica({ name, dir, etcd, loadBalancer, failures }))
  const firstServer = servers[0]!.currentServer()
  // The workload creates its own classes and CSIDriver.
  for (const path of ['storageclasses/local', `csidrivers/${DRIVER}`])
    await firstServer.call('DELETE', `/apis/storage.k8s.io/v1/${path}`)
  const kubeconfig = await readFile(firstServer.kubeconfig, 'utf8')
  const proxies: TcpProxy[] = []
  const daemons = await createDaemons(dir, NODES, async (name) => {
    const proxy = await startTcpProxy(loadBalancer.endpoint)
    proxies.push(proxy)
    const file = join(dir, `${name.replaceAll(' ', '-')}.kubeconfig`)
    await writeFile(file, kubeconfig.replaceAll(firstServer.url, `https://${proxy.endpoint}`), { mode: 0o600 })
    return { file, network: { cut: (how) => cutProxy(proxy, how), restore: () => proxy.restore() } }
  })
  return {
    dir,
    nodes: NODES,
    server() {
      const healthyServers = servers.filter(({ isHealthy }) => isHealthy())
      const candidates = healthyServers.length > 0 ? healthyServers : servers
      return candidates[Math.floor(random() * candidates.length)]!.currentServer()
    },
    components: [...etcdComponents(etcd), ...servers.map(({ component }) => component), ...daemons.components],
    start: daemons.start,
    async stop() {
      await daemons.stop()
      for (const server of servers) await server.stop()
      await Promise.all(proxies.map((proxy) => proxy.close()))
      await loadBalancer.close()
      await etcd.remove()
    },
    unexpectedExits: () => [...failures, ...daemons.unexpectedExits()],
  }
}

const cutProxy = (proxy: TcpProxy, how: 'closed' | 'silent'): void =>
  how === 'silent' ? proxy.dropData() : proxy.cut()

const etcdComponents = ({ members }: RunningEtcd): Component[] =>
  members.map((member, index) => ({
    name: `etcd ${index + 1}`,
    kind: 'etcd',
    start: () => member.start().catch(() => {}), // killed again before it was ready
    kill: () => member.kill(),
    freeze: { stop: () => member.signal('SIGSTOP'), continue: () => member.signal('SIGCONT') },
    network: member.peers,
    log: () => '',
  }))

interface ReplicaServer {
  readonly component: Component
  /** Returns the current process, or the last one. */
  currentServer(): RunningServer
  /** Whether the load balancer uses it. */
  isHealthy(): boolean
  stop(): Promise<void>
}

interface ReplicaOptions {
  readonly name: string
  readonly dir: string
  readonly etcd: RunningEtcd
  readonly loadBalancer: LoadBalancer
  /** Receives messages about exits without a kill. */
  readonly failures: string[]
}

async function createServerReplica({
  name,
  dir,
  etcd,
  loadBalancer,
  failures,
}: ReplicaOptions): Promise<ReplicaServer> {
  const proxies: TcpProxy[] = await Promise.all(etcd.endpoints.map((endpoint) => startTcpProxy(endpoint)))
  const store = `etcd://${proxies.map(({ endpoint }) => endpoint).join(',')}/replicated`
  const pkiDir = join(dir, 'pki')
  let server: RunningServer
  let isRunning = false
  let address = '127.0.0.1:0'

  async function start(): Promise<void> {
    const flags = ['--log-level', 'warn', '--store', store, '--pki-dir', pkiDir, '--listen', address, ...HISTORY]
    for (;;) {
      try {
        server = await startServer({ dataDir: join(dir, `server-${name}`), pkiDir, command: 'server', flags })
        break
      } catch (error) {
        // A server that cannot reach etcd exits, and its service manager starts it again.
        if (!/etcd|store/.test((error as Error).message)) return void failures.push((error as Error).message)
        await pause(200)
      }
    }
    isRunning = true
    address = new URL(server.url).host
    loadBalancer.add(address)
  }
  async function kill(): Promise<void> {
    if (!isRunning) return
    isRunning = false
    if (!isAlive(server.pid)) failures.push(`server ${name} exited unexpectedly: ${server.log().slice(-1_000)}`)
    loadBalancer.remove(address)
    await server.kill()
  }
  await start()
  let cancelHealthCheck = () => {}
  const component: Component = {
    name: `server ${name}`,
    kind: 'server',
    start,
    kill,
    freeze: {
      stop() {
        if (!isAlive(server.pid))
          return void failures.push(`server ${name} exited unexpectedly: ${server.log().slice(-1_000)}`)
        process.kill(server.pid, 'SIGSTOP')
        const timer = setTimeout(() => loadBalancer.remove(address), HEALTH_CHECK_MS)
        cancelHealthCheck = () => clearTimeout(timer)
      },
      continue() {
        cancelHealthCheck()
        if (!isAlive(server.pid)) return
        process.kill(server.pid, 'SIGCONT')
        loadBalancer.add(address)
      },
    },
    network: {
      cut(how) {
        for (const proxy of proxies) cutProxy(proxy, how)
      },
      restore() {
        for (const proxy of proxies) proxy.restore()
      },
    },
    log: () => server.log(),
  }
  return {
    component,
    currentServer: () => server,
    isHealthy: () => loadBalancer.targets.includes(address),
    async stop() {
      if (isRunning) await server.stop()
      await Promise.all(proxies.map((proxy) => proxy.close()))
    },
  }
}
