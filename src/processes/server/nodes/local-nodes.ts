// Runs the nodes of `stowage up` in this process. Each has an agent and a local CSI driver with its own pool, so that topology
// and capacity behave as in a cluster of several machines. node-names.ts names them.
//   DATA/nodes/node-1/agent/     directory of the agent, like that of a kubelet
//   DATA/nodes/node-1/pool/      volumes of the driver
import { statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { Registry } from 'prom-client'
import { stowageVersion } from '../../../apiserver/version.ts'
import type { Clock, Random } from '../../../base/clock.ts'
import { ensurePrivateDirectory } from '../../../base/files.ts'
import type { Logger } from '../../../base/log.ts'
import { UsageError } from '../../../base/usage-error.ts'
import type { Client } from '../../../client/index.ts'
import { type RunningDriver, startDriver, TOPOLOGY_KEY } from '../../../driver/index.ts'
import {
  createAgentMetrics,
  type PodOptions,
  type RunningNodeAgent,
  type StreamOptions,
  startNodeAgent,
} from '../../../nodeagent/index.ts'
import type { OperationRegistry } from '../../../runtime/index.ts'
import type { DriverEndpoint } from '../../controllers.ts'
import type { DriverHost } from '../drivers/start-drivers.ts'
import { directoryOf, type NodeNames } from './node-names.ts'

export interface NodesOptions {
  readonly count: number
  /** Returns the name of a node by its number, from 1. */
  readonly nameOf: NodeNames
  readonly dir: string
  /** Size of each pool. Default: POOL_BYTES_MAX, or less on a small disk. */
  readonly poolBytes: number | undefined
  /** Number of volumes that each driver can stage at the same time. Default: unlimited. */
  readonly maxVolumesPerNode: number | undefined
  readonly podOptions: PodOptions
  /** Directories in which a provisioner in this process creates volumes. Pods may mount them. */
  readonly volumesDirs: readonly string[]
  /** How long the leases of the nodes are valid without a renewal. Default: 40 s. */
  readonly leaseMs: number | undefined
  /** URL of the API server, for the environment of containers. */
  readonly serverUrl: string
  /** Returns the configuration with which a node's agent serves logs and commands. */
  streamsOf(node: string): StreamOptions
  /** Returns a client with the node's identity. */
  clientOf(node: string): Client
  readonly registry: Registry
  readonly operations: OperationRegistry
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

interface ReadyNodes {
  readonly names: readonly string[]
  /** `loop` or `directory`. */
  readonly backend: string
  readonly poolBytes: number
  readonly shortcomings: readonly string[]
}

/**
 * The running nodes, and the names of nodes from an earlier start that are not running now, as `up --output json` prints them.
 */
export type StartedNodes = ReadyNodes & { readonly idle: readonly string[] }

export interface RunningNodes {
  readonly drivers: readonly DriverEndpoint[]
  /** The nodes as hosts for the drivers given with --driver. */
  readonly hosts: readonly DriverHost[]
  /** Resolves when all nodes are ready. Never settles if a node fails or the signal is aborted first. */
  readonly readyNodes: Promise<ReadyNodes>
  /** Rejects when a node cannot start or fails later. */
  readonly failure: Promise<never>
  /**
   * Must be called after the signal is aborted. Waits for the agents, then stops the drivers, because the agents' last calls need
   * them.
   */
  stop(): Promise<void>
}

const POOL_BYTES_MAX = 10 * 1024 ** 3
/** The fraction of a small disk that all pools may use together. */
const DISK_FRACTION = 0.5
const POOL_UNIT_BYTES = 1024 ** 2

export function startNodes(options: NodesOptions): RunningNodes {
  const { count, dir, registry, clock, random, log, signal } = options
  const metrics = createAgentMetrics(registry, clock)
  const nodes = Array.from({ length: count }, (_, index) => {
    const nodeDir = join(dir, directoryOf(index + 1))
    return { name: options.nameOf(index + 1), nodeDir, address: join(nodeDir, 'csi.sock') }
  })
  const names = nodes.map(({ name }) => name)
  const poolBytes = ensurePrivateDirectory(dir).then(() => options.poolBytes ?? choosePoolBytes(dir, count))

  const drivers = nodes.map(async ({ name, nodeDir, address }): Promise<RunningDriver> => {
    const sizeBytes = await poolBytes
    await ensurePrivateDirectory(nodeDir)
    return startDriver({
      endpoint: `unix://${address}`,
      nodeId: name,
      pool: join(nodeDir, 'pool'),
      poolBytes: sizeBytes,
      backend: 'auto',
      topologyKey: TOPOLOGY_KEY,
      workloadCgroups: [],
      targetRoots: [join(nodeDir, 'agent')],
      maxVolumesPerNode: options.maxVolumesPerNode,
      version: stowageVersion,
      clock,
      log,
    })
  })
  const agents = nodes.map(async ({ name, nodeDir, address }, index): Promise<RunningNodeAgent> => {
    await drivers[index]
    signal.throwIfAborted()
    return startNodeAgent({
      client: options.clientOf(name),
      nodeName: name,
      readsByName: true, // a node is not permitted to list or watch all objects
      root: join(nodeDir, 'agent'),
      driverSockets: [address],
      leaseMs: options.leaseMs,
      ...options.podOptions,
      allowedHostPaths: [...(options.podOptions.allowedHostPaths ?? []), ...options.volumesDirs],
      serverUrl: options.serverUrl,
      streams: options.streamsOf(name),
      version: `v${stowageVersion}`,
      clock,
      random,
      log,
      metrics,
      operations: options.operations,
      signal,
    })
  })

  const failure = new Promise<never>((_, reject) => {
    const fail = (error: unknown) => void (signal.aborted || reject(error)) // errors after the signal are expected
    for (const agent of agents) agent.then(({ stopped }) => stopped).catch(fail)
  })
  const ready = new Promise<ReadyNodes>((resolve) => {
    Promise.all(agents).then(
      async () => {
        const { backend, poolBytes: sizeBytes, limitations } = (await drivers[0])!
        if (!signal.aborted) resolve({ names, backend, poolBytes: sizeBytes, shortcomings: limitations })
      },
      () => {}, // `failure` rejects
    )
  })
  return {
    drivers: nodes.map(({ name, address }, index) => ({
      node: name,
      address,
      started: Promise.allSettled([drivers[index]!]),
    })),
    hosts: nodes.map(({ name, nodeDir }, index) => {
      const agent = agents[index]!.then((running) => running.agent)
      agent.catch(() => {}) // `failure` rejects
      return { name, dir: nodeDir, agent }
    }),
    readyNodes: ready,
    failure,
    async stop() {
      await Promise.allSettled(agents.map(async (agent) => (await agent).stopped))
      await Promise.allSettled(drivers.map(async (driver) => (await driver).stop()))
    },
  }
}

/** Based on the disk's size rather than its free space, which changes between starts. */
const choosePoolBytes = async (dir: string, count: number): Promise<number> =>
  calculatePoolBytes({ dir, count, disk: await statfs(dir) })

interface PoolDisk {
  readonly dir: string
  /** Number of nodes that share the disk. */
  readonly count: number
  readonly disk: { readonly blocks: number; readonly bsize: number }
}

export function calculatePoolBytes({ dir, count, disk }: PoolDisk): number {
  const diskBytes = disk.blocks * disk.bsize
  const units = Math.floor((diskBytes * DISK_FRACTION) / count / POOL_UNIT_BYTES)
  if (units > 0) return Math.min(POOL_BYTES_MAX, units * POOL_UNIT_BYTES)
  throw new UsageError(
    `The disk of ${dir} has ${diskBytes} bytes, which is not enough for the pools of ${count} nodes: their storage would be 0. ` +
      'Choose a larger disk with --data-dir, fewer nodes with --nodes, or set --pool-size.',
  )
}
