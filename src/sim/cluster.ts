// An API server in the world: the production server on the production store, over a disk and behind a network that
// misbehave. Components are added as processes; the server itself is one and may die like any other.
import { allGatesOn, type FeatureGates } from '../api/feature-gates.ts'
import type { ExpansionQuota } from '../api/kind.ts'
import { ALL_KINDS } from '../api/kinds/index.ts'
import { createApiServer, createBuiltIns, inProcessClient, SYSTEM_USER, versionInfo } from '../apiserver/index.ts'
import { silentLog } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import { type HistoryOptions, openMemoryStore, type Store } from '../store/index.ts'
import { createDisk, type SimDisk } from './disk.ts'
import { createNetwork, type Network } from './network.ts'
import { createProcess, type Env, type SimProcess } from './process.ts'
import type { World } from './world.ts'

export interface Cluster {
  readonly world: World
  readonly network: Network
  readonly disk: SimDisk
  readonly server: SimProcess
  /** The server's own client, past the network; undefined while it is down. For users and checkers. */
  direct(): Client | undefined
  /** Its store, for checkers; undefined while it is down. */
  store(): Store | undefined
  /** Told the store of every life of the server, the present one at once. */
  follow(listener: (store: Store) => void): void
  /** A component whose only way to the server is the network. It starts at once. */
  add(name: string, main: (env: Env, client: Client) => void): SimProcess
  /** Starts what is down, ends all faults, and waits until the server answers. */
  heal(): Promise<void>
}

export interface ClusterOptions {
  readonly expansionQuota?: ExpansionQuota
  /** Asked at every start of the server. */
  readonly gates?: () => FeatureGates
}

export async function createCluster(
  world: World,
  history?: HistoryOptions,
  { expansionQuota, gates = () => allGatesOn }: ClusterOptions = {},
): Promise<Cluster> {
  const disk = createDisk(world, 'server')
  const processes: SimProcess[] = []
  const followers: ((store: Store) => void)[] = []
  let current: { client: Client; store: Store } | undefined

  const server = createProcess(world, 'server', (env) => {
    current = undefined
    void start(env)
  })
  async function start(env: Env): Promise<void> {
    const { clock, random } = env
    const store = await env.pass(openMemoryStore({ clock, medium: disk.mount(), ...(history ? { history } : {}) }))
    const api = createApiServer({
      store,
      clock,
      random,
      log: silentLog,
      kinds: ALL_KINDS,
      gates: gates(),
      ...(expansionQuota ? { expansionQuota } : {}),
      authenticator: { authenticate: () => ({ is: 'known', user: SYSTEM_USER }), authenticateToken: () => undefined },
      authorizer: { authorize: () => ({ allowed: true }) },
      version: versionInfo(),
    })
    await env.pass(createBuiltIns(api.objects).catch(() => {})) // a disk that refuses is tried again by the next start
    current = { client: inProcessClient(api.objects, SYSTEM_USER), store }
    for (const tell of followers) tell(store)
  }
  const network = createNetwork(world, () => (server.alive ? current?.client : undefined))

  const crashOfServer = server.crash
  server.crash = () => {
    if (!server.alive) return
    crashOfServer()
    current = undefined
    disk.powerCut()
    network.serverDied()
  }

  const cluster: Cluster = {
    world,
    network,
    disk,
    server,
    direct: () => (server.alive ? current?.client : undefined),
    store: () => (server.alive ? current?.store : undefined),
    follow(listener) {
      followers.push(listener)
      if (current) listener(current.store)
    },
    add(name, main) {
      const process = createProcess(world, name, (env) => main(env, network.clientFor(env)))
      processes.push(process)
      process.start()
      return process
    },
    async heal() {
      Object.assign(network.faults, {
        loseRequest: 0,
        loseReply: 0,
        duplicate: 0,
        refuse: 0,
        breakWatch: 0,
        silenceWatch: 0,
      })
      network.losing.clear()
      disk.faults.refuse = 0
      for (const process of [server, ...processes]) {
        process.crashRate = 0
        process.start()
      }
      await world.runUntil(() => cluster.direct() !== undefined, {
        withinMs: 60_000,
        waitingFor: 'the server to be up',
      })
    },
  }
  server.start()
  await cluster.heal()
  return cluster
}
