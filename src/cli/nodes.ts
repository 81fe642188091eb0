// The nodes of `stowage up`: for each an agent and a driver for local storage with a pool of its own, in this process,
// so that where a volume is and how much room there is are real on one machine.
//   DATA/nodes/node-1/           what the agent keeps, as a kubelet does
//   DATA/nodes/node-1/pool/      the volumes of its driver
import { join } from 'node:path'
import type { Registry } from 'prom-client'
import { csiDriverKind } from '../api/kinds/csi-driver.ts'
import { storageClassKind } from '../api/kinds/storage-class.ts'
import type { FirstObject } from '../apiserver/index.ts'
import { stowageVersion } from '../apiserver/version.ts'
import type { Clock, Random } from '../base/clock.ts'
import { ensurePrivateDirectory } from '../base/files.ts'
import type { Logger } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import { DRIVER_NAME, type RunningDriver, startDriver, TOPOLOGY_KEY } from '../driver/index.ts'
import { createAgentMetrics, type RunningNodeAgent, startNodeAgent } from '../nodeagent/index.ts'

export interface NodesOptions {
  readonly count: number
  readonly dir: string
  /** Of each pool. Default: what its file system has. */
  readonly poolBytes: number | undefined
  readonly runCommands: boolean
  readonly client: Client
  readonly registry: Registry
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
}

/** A driver that runs on one of them. */
export interface NodeDriver {
  readonly node: string
  readonly address: string
}

export interface RunningNodes {
  readonly drivers: readonly NodeDriver[]
  /** How volumes are kept: loop devices, or directories where this user may do no more. */
  readonly backend: string
  readonly shortcomings: readonly string[]
  /** Rejects when an agent cannot go on. */
  readonly gaveUp: Promise<never>
  /** When the signal has fired: waits for the agents, then ends the drivers, whom their last calls were for. */
  stop(): Promise<void>
}

/** What a new store begins with so that claims can be placed on these nodes. */
export const LOCAL_OBJECTS: readonly FirstObject[] = [
  {
    kind: csiDriverKind,
    object: {
      metadata: { name: DRIVER_NAME },
      spec: { attachRequired: false, storageCapacity: true, podInfoOnMount: true, fsGroupPolicy: 'File' },
    } as FirstObject['object'],
  },
  {
    kind: storageClassKind,
    object: {
      metadata: { name: 'local', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: DRIVER_NAME,
      volumeBindingMode: 'WaitForFirstConsumer',
      allowVolumeExpansion: true,
    } as FirstObject['object'],
  },
]

export async function startNodes(options: NodesOptions): Promise<RunningNodes> {
  const { count, dir, client, registry, clock, random, log, signal } = options
  await ensurePrivateDirectory(dir)
  const names = Array.from({ length: count }, (_, index) => `node-${index + 1}`)
  const metrics = createAgentMetrics(registry, clock)
  const drivers: RunningDriver[] = []
  const agents: RunningNodeAgent[] = []
  const stopDrivers = async () => void (await Promise.all(drivers.map((driver) => driver.stop())))
  const addressOf = (node: string) => join(dir, node, 'csi.sock')
  async function start(node: string): Promise<void> {
    const root = join(dir, node)
    await ensurePrivateDirectory(root)
    drivers.push(
      await startDriver({
        endpoint: `unix://${addressOf(node)}`,
        nodeId: node,
        pool: join(root, 'pool'),
        ...(options.poolBytes === undefined ? {} : { poolBytes: options.poolBytes }),
        backend: 'auto',
        topologyKey: TOPOLOGY_KEY,
        workloadCgroups: [],
        version: stowageVersion,
        clock,
        log,
      }),
    )
    agents.push(
      await startNodeAgent({
        client,
        nodeName: node,
        root: join(root, 'agent'),
        driverSockets: [addressOf(node)],
        runCommands: options.runCommands,
        version: `v${stowageVersion}`,
        clock,
        random,
        log,
        metrics,
        signal,
      }),
    )
  }

  const started = await Promise.allSettled(names.map(start))
  const failed = started.find((one) => one.status === 'rejected')
  if (failed) {
    await stopDrivers()
    throw failed.reason
  }
  const [first] = drivers
  return {
    drivers: names.map((node) => ({ node, address: addressOf(node) })),
    backend: first?.backend ?? 'none',
    shortcomings: first?.shortcomings ?? [],
    gaveUp: new Promise((_, reject) => {
      for (const { stopped } of agents) stopped.catch(reject)
    }),
    async stop() {
      await Promise.allSettled(agents.map(({ stopped }) => stopped))
      await stopDrivers()
    },
  }
}
