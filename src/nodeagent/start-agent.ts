// An agent for this machine: its disk, its plugin directory, its sockets, and a root of its own that no other agent uses.
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
import { noMoreContainers } from './commands/containers.ts'
import { createHostContainers } from './commands/host-containers.ts'
import { createHostDisk } from './disk/host-disk.ts'
import { type AgentMetrics, createAgentMetrics } from './metrics.ts'
import { type MachineFacts, machineFacts } from './node/facts.ts'
import { agentPaths } from './paths.ts'
import { createPluginCalls } from './registration/plugin-calls.ts'
import { createPluginDirectory } from './registration/plugin-directory.ts'

export interface NodeAgentOptions {
  readonly client: Client
  readonly nodeName: string
  /** The kubelet's root directory; made if missing. */
  readonly root: string
  /** Sockets of drivers that have no registrar. */
  readonly driverSockets?: readonly string[]
  /** Containers' commands run as processes of this machine. Default: nothing runs. */
  readonly runCommands?: boolean
  readonly labels?: Readonly<Record<string, string>>
  readonly podsMax?: number
  /** What this node says of its machine instead of the truth: several nodes may share one. */
  readonly machine?: Partial<MachineFacts>
  readonly version: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  /** Metrics of several agents in one process may share a registry: then the first to come makes them, and hands them on. */
  readonly metrics?: AgentMetrics
  readonly registry?: Registry
  readonly signal: AbortSignal
}

export interface RunningNodeAgent {
  readonly agent: NodeAgent
  /** Settles when the agent has stopped; rejects if it could not start or had to give up. */
  readonly stopped: Promise<void>
}

/** Settles once the node is registered and takes pods. */
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
      machine: { ...(await machineFacts()), ...options.machine },
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
        : noMoreContainers(await createHostContainers({ paths, disk, clock, log: silentLog })),
      ...(options.labels ? { labels: options.labels } : {}),
      ...(options.podsMax === undefined ? {} : { podsMax: options.podsMax }),
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

/** Kept in the root, so that an agent that comes back is known as the one that had the node's name. */
async function agentId(root: string, random: Random): Promise<string> {
  const path = join(root, 'agent-id')
  const known = (await readTextIfPresent(path))?.trim()
  if (known) return known
  const id = randomUuid(random)
  await writePrivateFile(path, `${id}\n`)
  return id
}

/** One agent per root. The kernel takes the lock back however its process ends. */
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

/** What the device behind a volume does, where the volume has one for itself: not the disk the agent itself lives on. */
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
