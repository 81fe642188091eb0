// Starts a node agent on the disk, plugin directory and sockets of this machine, with an exclusive root directory.
// `stowage node` starts one agent; `stowage up` starts several in one process, each with its own root and node name.

import { mkdir, realpath } from 'node:fs/promises'
import { Registry } from 'prom-client'
import type { Clock, Random } from '../base/clock.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import { connectDriver, recordCalls } from '../csi/index.ts'
import { createMounts } from '../host/mounts.ts'
import { createRun } from '../host/run.ts'
import { createCacheSet, type OperationRegistry } from '../runtime/index.ts'
import { createNodeAgent, type NodeAgent } from './agent.ts'
import { readOrCreateAgentId } from './agent-id.ts'
import { withoutNewContainers } from './commands/containers.ts'
import { createHostContainers } from './commands/host-containers.ts'
import { createHostDisk } from './disk/host-disk.ts'
import { type AgentMetrics, createAgentMetrics } from './metrics.ts'
import { type MachineInfo, readMachineInfo } from './node/machine-info.ts'
import { agentPaths } from './paths.ts'
import type { PodOptions } from './pod-options.ts'
import { createEntryReader } from './pods/read-entries.ts'
import { createPluginCalls } from './registration/plugin-calls.ts'
import { createPluginDirectory } from './registration/plugin-directory.ts'
import { lockRoot } from './root-lock.ts'
import { createIoRates } from './stats/io-rates.ts'
import type { StreamOptions } from './streaming/serve-streams.ts'

export interface NodeAgentOptions extends PodOptions {
  readonly client: Client
  readonly nodeName: string
  /** The root directory, which has the same layout as the kubelet's. It is created if it does not exist. */
  readonly root: string
  /** Serves logs and commands of containers, if commands are run. Default: they are not served. */
  readonly streams?: StreamOptions
  /** The sockets of drivers without node-driver-registrar. */
  readonly driverSockets?: readonly string[]
  /** URL of the API server, for the environment variables of containers. Default: the variables are not set. */
  readonly serverUrl?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly podsMax?: number
  /** How long the node's lease is valid without a renewal; it is renewed four times as often. Default 40 s. */
  readonly leaseMs?: number
  /** Whether to read claims, volumes and attachments one by one, for a user who may not list or watch them. Default false. */
  readonly readsByName?: boolean
  /** Overrides fields of the detected machine info, for several nodes on one machine. */
  readonly machine?: Partial<MachineInfo>
  readonly version: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Metrics that several agents of the process share. Default: new metrics on `registry`. */
  readonly metrics?: AgentMetrics
  readonly registry?: Registry
  /** Lists the agent's operations. Default: they are not listed. */
  readonly operations?: OperationRegistry
  readonly signal: AbortSignal
}

export interface RunningNodeAgent {
  readonly agent: NodeAgent
  /** Resolves when the agent has stopped. Rejects if it could not start or failed. */
  readonly stopped: Promise<void>
}

/** Resolves when the node is registered and ready, or when the agent stops before that. */
export async function startNodeAgent(options: NodeAgentOptions): Promise<RunningNodeAgent> {
  const { client, nodeName, clock, random, log, signal } = options
  await mkdir(options.root, { recursive: true, mode: 0o750 })
  const root = await realpath(options.root)
  const lock = await lockRoot(root)
  try {
    const run = createRun({ clock })
    const mounts = createMounts({ run })
    const disk = createHostDisk({ mounts, run })
    const paths = agentPaths(root)
    const metrics = options.metrics ?? createAgentMetrics(options.registry ?? new Registry(), clock)
    const caches = createCacheSet({ client, clock, random, log })
    const machine = { ...(await readMachineInfo()), ...options.machine }
    const containers = await createHostContainers({
      paths,
      disk,
      clock,
      entries: createEntryReader(client),
      resources: machine,
      address: machine.address,
      imageCommands: options.imageCommands,
      log: options.runCommands ? log : silentLog,
      serverUrl: options.serverUrl,
      logLimits: options.containerLogs,
    })
    const agent = createNodeAgent({
      nodeName,
      identity: `${nodeName}_${await readOrCreateAgentId(root, random)}`,
      root,
      client,
      caches,
      clock,
      random,
      log,
      metrics,
      clientMetrics: { operations: options.operations },
      machine,
      disk,
      plugins: {
        directory: createPluginDirectory({ path: paths.registry, log }),
        calls: createPluginCalls({ clock }),
      },
      driverSockets: options.driverSockets ?? [],
      connect: (address) =>
        connectDriver({ address, clock, log, metrics: recordCalls(metrics.calls, options.operations) }),
      ratesAt: createIoRates({ root, mounts, clock }),
      containers: options.runCommands ? containers : withoutNewContainers(containers),
      streams: options.runCommands ? options.streams : undefined,
      allowedHostPaths: options.allowedHostPaths,
      labels: options.labels,
      podsMax: options.podsMax,
      leaseMs: options.leaseMs,
      readsByName: options.readsByName,
      version: options.version,
    })
    let onReady = () => {}
    const ready = new Promise<void>((resolve) => {
      onReady = resolve
    })
    const stopped = agent.run(signal, onReady).finally(async () => {
      await caches.stop()
      await lock.release()
    })
    await Promise.race([ready, stopped])
    return { agent, stopped }
  } catch (error) {
    await lock.release()
    throw error
  }
}
