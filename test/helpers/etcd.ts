// Runs etcd members on loopback, each in its own directory, which can be killed and restarted. If CI is set, a missing etcd
// fails the tests that need it; otherwise they are skipped.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPeerNetwork } from './peer-network.ts'

export interface EtcdOptions {
  /** Number of members. Default 1. */
  readonly members?: number
  readonly flags?: readonly string[]
  /** Parent of the members' directories. Default: the system's temporary directory. */
  readonly dir?: string
  /** Paths of PEM files. Clients then need TLS and a certificate of this CA. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string }
}

interface EtcdMember {
  /** HOST:PORT for clients. */
  readonly endpoint: string
  /** Sends SIGKILL. Resolves when the process has exited. */
  kill(): Promise<void>
  /** Starts the member on its directory and address. Resolves when it is healthy. */
  start(): Promise<void>
  /** Sends SIGSTOP or SIGCONT, to simulate a member that hangs. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void
  /** Cuts the connections between this member and the others. Clients still reach it. */
  readonly peers: { cut(): void; restore(): void }
  isLeader(): Promise<boolean>
}

export interface RunningEtcd {
  readonly endpoints: readonly string[]
  readonly members: readonly EtcdMember[]
  /** Waits for a leader and returns it. */
  leader(): Promise<EtcdMember>
  remove(): Promise<void>
}

/** Returns why tests that need etcd are skipped, or undefined if they run. */
export function etcdSkipReason(): string | undefined {
  try {
    execFileSync('etcd', ['--version'], { stdio: 'ignore' })
    return undefined
  } catch {
    return process.env.CI ? undefined : 'etcd is not installed (Debian: etcd-server)'
  }
}

/** Starts etcd on free ports, and on others if another process has taken one of them before etcd listens. */
export async function startEtcd(options: EtcdOptions = {}): Promise<RunningEtcd> {
  for (let retries = 3; ; retries--) {
    try {
      return await startEtcdOnFreePorts(options)
    } catch (error) {
      if (retries === 0 || !/address already in use/.test((error as Error).message)) throw error
    }
  }
}

async function startEtcdOnFreePorts({
  members: count = 1,
  flags = [],
  dir: parent = tmpdir(),
  tls,
}: EtcdOptions): Promise<RunningEtcd> {
  const dir = await mkdtemp(join(parent, 'stowage-etcd-'))
  const ports = await freePorts(3 * count)
  const names = Array.from({ length: count }, (_, index) => ({
    name: `m${index}`,
    client: `127.0.0.1:${ports[3 * index]}`,
    peer: `127.0.0.1:${ports[3 * index + 1]}`,
    metrics: `http://127.0.0.1:${ports[3 * index + 2]}`,
  }))
  const peerNetwork = await startPeerNetwork(names.map(({ peer }) => peer))
  const advertisedPeers = peerNetwork.endpoints.map((endpoint) => `http://${endpoint}`)
  const cluster = names.map(({ name }, index) => `${name}=${advertisedPeers[index]}`).join(',')
  const scheme = tls ? 'https' : 'http'
  const tlsFlags = tls
    ? [`--cert-file=${tls.cert}`, `--key-file=${tls.key}`, `--trusted-ca-file=${tls.ca}`, '--client-cert-auth']
    : []
  const members = names.map(({ name, client, peer, metrics }, index) => {
    const peers = { cut: () => peerNetwork.cut(index), restore: () => peerNetwork.restore(index) }
    return createMember({ endpoint: client, metrics, peers }, [
      `--name=${name}`,
      `--data-dir=${join(dir, name)}`,
      `--listen-client-urls=${scheme}://${client}`,
      `--advertise-client-urls=${scheme}://${client}`,
      `--listen-metrics-urls=${metrics}`,
      ...tlsFlags,
      `--listen-peer-urls=http://${peer}`,
      `--initial-advertise-peer-urls=${advertisedPeers[index]}`,
      `--initial-cluster=${cluster}`,
      '--heartbeat-interval=50',
      '--election-timeout=500',
      '--logger=zap',
      '--log-level=error',
      ...flags,
    ])
  })
  const remove = async () => {
    await Promise.all(members.map((member) => member.kill()))
    await peerNetwork.close()
    await rm(dir, { recursive: true, force: true })
  }
  try {
    await Promise.all(members.map((member) => member.start()))
  } catch (error) {
    await remove()
    throw error
  }
  return {
    endpoints: members.map(({ endpoint }) => endpoint),
    members,
    async leader() {
      for (;;) {
        for (const member of members) if (await member.isLeader()) return member
        await pause()
      }
    },
    remove,
  }
}

/** Creates a member. Its health and metrics have their own address, which needs no certificate. */
function createMember(
  { endpoint, metrics, peers }: Pick<EtcdMember, 'endpoint' | 'peers'> & { readonly metrics: string },
  flags: readonly string[],
): EtcdMember {
  let child: ChildProcess | undefined
  const get = async (path: string): Promise<string> => {
    const response = await fetch(`${metrics}${path}`, { signal: AbortSignal.timeout(1_000) })
    return response.text()
  }
  return {
    endpoint,
    peers,
    async start() {
      const startedChild = spawn('etcd', flags, { stdio: ['ignore', 'ignore', 'pipe'] })
      child = startedChild
      let errors = ''
      startedChild.stderr.on('data', (text) => {
        errors = (errors + text).slice(-20_000)
      })
      let failure: string | undefined
      startedChild.on('error', (error) => {
        failure = error.message
      })
      startedChild.on('exit', (code, signal) => {
        failure = `exited with ${code ?? signal}`
      })
      while (!(await get('/health').catch(() => ''))?.includes('"true"')) {
        if (failure) throw new Error(`etcd did not start: ${failure}\n${errors}`)
        await pause()
      }
    },
    async kill() {
      if (!child || child.exitCode !== null || child.signalCode !== null) return
      const exit = once(child, 'exit')
      child.kill('SIGKILL')
      await exit
    },
    signal: (name) => void child?.kill(name),
    isLeader: async () => /^etcd_server_is_leader 1$/m.test(await get('/metrics').catch(() => '')),
  }
}

/** Returns different ports that are currently free. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20))
