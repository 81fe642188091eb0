// Starts a node agent on this machine: real disk, plugin directory, sockets, and an exclusive root directory.
// `stowage node` starts one; `stowage up` starts several in one process, each with its own root and node name.

import { mkdir, realpath, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import type { Clock, Random } from '../base/clock.ts'
import { readTextIfPresent, writePrivateFile } from '../base/files.ts'
import { randomUuid } from '../base/identifiers.ts'
import { type Logger, silentLog } from '../base/log.ts'
import type { Client } from '../client/index.ts'
import { connectDriver } from '../csi/index.ts'
import { createCounters } from '../host/counters.ts'
import { formatDeviceNumber } from '../host/device-number.ts'
import type { IoRates, Mounts } from '../host/index.ts'
import { createMounts } from '../host/mounts.ts'
import { createRun } from '../host/run.ts'
import { createCacheSet } from '../runtime/index.ts'
import { createNodeAgent, type NodeAgent } from './agent.ts'
import { withoutNewContainers } from './commands/containers.ts'
import { createHostContainers } from './commands/host-containers.ts'
import { createHostDisk } from './disk/host-disk.ts'
import { type AgentMetrics, createAgentMetrics } from './metrics.ts'
import { type MachineInfo, readMachineInfo } from './node/machine-info.ts'
import { agentPaths } from './paths.ts'
import { createPluginCalls } from './registration/plugin-calls.ts'
import { createPluginDirectory } from './registration/plugin-directory.ts'

export interface NodeAgentOptions {
  readonly client: Client
  readonly nodeName: string
  /** The kubelet's root directory; created if missing. */
  readonly root: string
  /** Sockets of drivers without node-driver-registrar. */
  readonly driverSockets?: readonly string[]
  /** Runs containers' commands as processes of this machine. Default: no process runs. */
  readonly runCommands?: boolean
  readonly labels?: Readonly<Record<string, string>>
  readonly podsMax?: number
  /** Overrides parts of the detected machine info, for several nodes on one machine. */
  readonly machine?: Partial<MachineInfo>
  readonly version: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Shared by several agents in one process; absent: created on `registry`. */
  readonly metrics?: AgentMetrics
  readonly registry?: Registry
  readonly signal: AbortSignal
}

export interface RunningNodeAgent {
  readonly agent: NodeAgent
  /** Settles when the agent has stopped; rejects if it could not start or failed. */
  readonly stopped: Promise<void>
}

/** Settles once the node is registered and ready. */
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
    const agent = createNodeAgent({
      nodeName,
      identity: `${nodeName}_${await agentId(root, random)}`,
      root,
      client,
      caches,
      clock,
      random,
      log,
      metrics,
      machine: { ...(await readMachineInfo()), ...options.machine },
      disk,
      plugins: {
        directory: createPluginDirectory({ path: paths.registry, log }),
        calls: createPluginCalls({ clock }),
      },
      driverSockets: options.driverSockets ?? [],
      connect: (address) => connectDriver({ address, clock, log, metrics: metrics.calls }),
      ratesAt: createRates(root, mounts, clock),
      containers: options.runCommands
        ? await createHostContainers({ paths, disk, clock, log })
        : withoutNewContainers(await createHostContainers({ paths, disk, clock, log: silentLog })),
      labels: options.labels,
      podsMax: options.podsMax,
      version: options.version,
    })
    let ready = () => {}
    const isReady = new Promise<void>((resolve) => {
      ready = resolve
    })
    const stopped = agent.run(signal, ready).finally(async () => {
      await caches.stop()
      await lock.release()
    })
    await Promise.race([isReady, stopped])
    return { agent, stopped }
  } catch (error) {
    await lock.release()
    throw error
  }
}

/** Stored in the root, so that a restarted agent keeps its lease on the node name. */
async function agentId(root: string, random: Random): Promise<string> {
  const path = join(root, 'agent-id')
  const known = (await readTextIfPresent(path))?.trim()
  if (known) return known
  const id = randomUuid(random)
  await writePrivateFile(path, `${id}\n`)
  return id
}

/** One agent per root. An abstract socket as lock: the kernel releases it when the process ends in any way. */
async function lockRoot(root: string): Promise<{ release(): Promise<void> }> {
  const { dev, ino } = await stat(root)
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(`The directory ${root} is used by another node agent. Stop it, or choose another --root-dir.`)
          : error,
      ),
    )
    server.listen(`\0stowage-node-${dev}-${ino}`, resolve)
  })
  return { release: () => new Promise((resolve) => server.close(() => resolve())) }
}

/** IO rates of a volume's own device, which is not the disk of the agent's root. */
function createRates(root: string, mounts: Mounts, clock: Clock) {
  const counters = createCounters({ clock })
  return async (path: string): Promise<IoRates | undefined> => {
    const device = await mounts.sourceOf(path).catch(() => undefined)
    if (device === undefined) return undefined
    const [own, behind] = await Promise.all([stat(root, { bigint: true }), stat(device, { bigint: true })])
    if (formatDeviceNumber(own.dev) === formatDeviceNumber(behind.rdev)) return undefined
    return (await counters.read(device))?.rates
  }
}
