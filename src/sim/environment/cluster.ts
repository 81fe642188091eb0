// The API server of a simulation: the production server on a store in memory, with a disk and a network that can
// fail. The server is a process and may crash; components are added as further processes. With several API
// servers, the others share the store of the first, as servers on one etcd cluster do.
import { allGatesOn, type FeatureGates } from '../../api/feature-gates.ts'
import type { ExpansionQuota } from '../../api/kind.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import {
  type ApiServer,
  type ApiServerOptions,
  type Authorizer,
  createApiServer,
  createBuiltIns,
  createNodeAuthorization,
  inProcessClient,
  nodeUser,
  SYSTEM_USER,
  standardAdmission,
  versionInfo,
} from '../../apiserver/index.ts'
import { silentLog } from '../../base/log.ts'
import type { Client } from '../../client/index.ts'
import { type HistoryOptions, openMemoryStore, type Store } from '../../store/index.ts'
import { createDisk, type SimDisk } from './disk.ts'
import { createNetwork, type Network } from './network.ts'
import { createProcess, type Env, type SimProcess } from './process.ts'
import { shareStore } from './shared-store.ts'
import type { Simulation } from './simulation.ts'

export interface Cluster {
  readonly simulation: Simulation
  readonly network: Network
  readonly disk: SimDisk
  readonly server: SimProcess
  /** Further API servers on the same store, by name. */
  readonly replicas: ReadonlyMap<string, SimProcess>
  /** Returns a client that bypasses the network, for users and checkers; undefined while the server is down. */
  directClient(): Client | undefined
  /** Returns a direct client of a randomly chosen API server; undefined if that server is not ready. */
  anyDirectClient(): Client | undefined
  /** Returns a function that replaces a client with one that has the permissions of the node's agent. Requires `identities`. */
  withNodePermissions(nodeName: string): (server: Client) => Client
  /** Returns the store, for checkers; undefined while the server is down. */
  store(): Store | undefined
  /** Calls `listener` with the store of every incarnation of the server, starting with the current one. */
  follow(listener: (store: Store) => void): void
  /** Adds and starts a component that reaches the server over the network only. `adaptServer` wraps the server for it. */
  add(name: string, main: (env: Env, client: Client) => void, adaptServer?: (server: Client) => Client): SimProcess
  /** Starts every process that is down, sets all fault rates to 0, and waits until the server is up. */
  heal(): Promise<void>
}

export interface ClusterOptions {
  readonly expansionQuota?: ExpansionQuota
  /** Read at every start of the server. */
  readonly gates?: () => FeatureGates
  /** API servers that share the store. Default 1. */
  readonly apiServers?: number
  /** Whether the server has the node authorizer and the admission plugin NodeRestriction. */
  readonly identities?: boolean
  /** Wraps the client of each incarnation of the server, for planted bugs. */
  readonly wrapServer?: (client: Client, store: Store) => Client
}

/** Denies every request that the node authorizer does not allow: a simulated cluster has no RBAC roles. */
const DENY: Authorizer = { authorize: () => ({ allowed: false }) }
/** The longest delay between the store and another server's copy, for changes and for requests. */
const COPY_LATENCY_MS = 100

export async function createCluster(
  simulation: Simulation,
  history?: HistoryOptions,
  options: ClusterOptions = {},
): Promise<Cluster> {
  const { expansionQuota, gates = () => allGatesOn, apiServers = 1, identities = false } = options
  const { wrapServer = (client) => client } = options
  const disk = createDisk(simulation, 'server')
  const processes: SimProcess[] = []
  const followers: ((store: Store) => void)[] = []
  let currentServer: { client: Client; store: Store; clientOf(nodeName: string): Client } | undefined

  const server = createProcess(simulation, 'server', (env) => {
    currentServer = undefined
    void start(env)
  })
  async function start(env: Env): Promise<void> {
    const store = await env.pass(
      openMemoryStore({ clock: env.clock, medium: disk.mount(), ...(history ? { history } : {}) }),
    )
    const nodes = identities
      ? createNodeAuthorization({ store, clock: env.clock, log: silentLog, next: DENY })
      : undefined
    const api = createServerOn(env, store, nodes ? { admission: standardAdmission([nodes.restriction]) } : {})
    await env.pass(createBuiltIns(api.objects).catch(() => {})) // the next start retries writes that a failing disk rejected
    if (nodes) await env.pass(nodes.start({ objects: api.objects.objects, signal: env.signal }))
    const nodeClients = new Map<string, Client>()
    currentServer = {
      client: wrapServer(inProcessClient(api.objects, SYSTEM_USER), store),
      store,
      clientOf(nodeName) {
        const connect = () =>
          wrapServer(inProcessClient(api.objects, nodeUser(nodeName), nodes?.authorizer ?? DENY), store)
        const client = nodeClients.get(nodeName) ?? connect()
        nodeClients.set(nodeName, client)
        return client
      },
    }
    for (const follow of followers) follow(store)
    for (const { process: instance } of replicas) {
      instance.crash() // a server that started before the store serves nothing
      instance.start()
    }
  }

  const createServerOn = (
    { clock, random }: Env,
    store: Store,
    access: Pick<ApiServerOptions, 'admission'> = {},
  ): ApiServer =>
    createApiServer({
      ...access,
      store,
      clock,
      random,
      log: silentLog,
      kinds: ALL_KINDS,
      gates: gates(),
      ...(expansionQuota ? { expansionQuota } : {}),
      authenticator: {
        authenticate: () => ({ is: 'authenticated', user: SYSTEM_USER }),
        authenticateToken: () => undefined,
      },
      authorizer: { authorize: () => ({ allowed: true }) },
      version: versionInfo(),
    })

  const replicas = Array.from({ length: apiServers - 1 }, (_, index) => createReplica(`server-${index + 2}`))
  function createReplica(name: string) {
    const replica: { readonly process: SimProcess; client: Client | undefined } = {
      client: undefined,
      process: createProcess(simulation, name, (env) => {
        replica.client = undefined
        const sharedStore = currentServer?.store
        if (sharedStore) void serve(env, sharedStore)
      }),
    }
    async function serve(env: Env, sharedStore: Store): Promise<void> {
      const store = await shareStore({ simulation, env, sharedStore, latencyMs: COPY_LATENCY_MS })
      replica.client = inProcessClient(createServerOn(env, store).objects, SYSTEM_USER)
    }
    return replica
  }
  const serverRandom = apiServers > 1 ? simulation.random('api servers') : () => 0

  const network = createNetwork(simulation, () => (server.alive ? currentServer?.client : undefined))

  const crashServer = server.crash
  server.crash = () => {
    if (!server.alive) return
    crashServer()
    currentServer = undefined
    disk.powerCut()
    network.breakWatches()
    for (const { process: instance } of replicas) instance.crash() // the shared store ends with the server that runs it
  }

  const cluster: Cluster = {
    simulation,
    network,
    disk,
    server,
    replicas: new Map(replicas.map(({ process }) => [process.name, process])),
    directClient: () => (server.alive ? currentServer?.client : undefined),
    anyDirectClient() {
      const clients = [
        cluster.directClient(),
        ...replicas.filter(({ process }) => process.alive).map(({ client }) => client),
      ]
      return clients[Math.floor(serverRandom() * clients.length)]
    },
    withNodePermissions: (nodeName) => (client) => currentServer?.clientOf(nodeName) ?? client,
    store: () => (server.alive ? currentServer?.store : undefined),
    follow(listener) {
      followers.push(listener)
      if (currentServer) listener(currentServer.store)
    },
    add(name, main, adaptServer) {
      const instance = createProcess(simulation, name, (env) => main(env, network.clientFor(env, adaptServer)))
      processes.push(instance)
      instance.start()
      return instance
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
      network.lossesByProcess.clear()
      disk.faults.refuse = 0
      for (const instance of [server, ...replicas.map((replica) => replica.process), ...processes]) {
        instance.crashRate = 0
        instance.start()
      }
      await simulation.runUntil(() => cluster.directClient() !== undefined, {
        withinMs: 60_000,
        waitingFor: 'the server to be up',
      })
    },
  }
  server.start()
  await cluster.heal()
  return cluster
}
