// Runs the drivers given with `stowage up --driver`, each on one node or, if its command or socket contains {node}, on every
// node, and reports when they are ready, have a problem or have recovered.
//   DATA/nodes/node-1/drivers/NAME/csi.sock       socket of a command
//   DATA/nodes/node-1/drivers/NAME/data/          {dir} of a command
//   DATA/nodes/node-1/drivers/NAME/log            output of a command
//   DATA/nodes/node-1/drivers/NAME/process.json   record of the process of a command
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Random } from '../../../base/clock.ts'
import { ensurePrivateDirectory } from '../../../base/files.ts'
import { keyedLock } from '../../../base/keyed-lock.ts'
import type { Logger } from '../../../base/log.ts'
import { asUsageError } from '../../../base/usage-error.ts'
import type { Client } from '../../../client/index.ts'
import { parseSocketPath } from '../../../csi/socket-path.ts'
import type { NodeAgent } from '../../../nodeagent/index.ts'
import type { DriverEndpoint, DriverRole } from '../../controllers.ts'
import { createDriverInstance, type ReadyInstance } from './driver-instance.ts'
import { openDriverLog } from './driver-log.ts'
import { createDriverProcess } from './driver-process.ts'
import {
  type DriverSource,
  describeSource,
  expandCommand,
  expandSocket,
  isPerNode,
  nameCommands,
} from './driver-source.ts'
import { writeDriverObjects } from './write-objects.ts'

/** A node that can run drivers. */
export interface DriverHost {
  readonly name: string
  readonly dir: string
  /** Absent if this process runs no nodes. */
  readonly agent?: Promise<Pick<NodeAgent, 'registerDriver' | 'unregisterDriver'>>
}

export interface StartDriversOptions {
  readonly sources: readonly DriverSource[]
  /** The nodes in this process, or one host without an agent. */
  readonly hosts: readonly [DriverHost, ...DriverHost[]]
  /** Whether other servers run nodes of the same cluster. */
  readonly isStoreShared: boolean
  /** Client for the CSIDriver and StorageClass objects. */
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  onReport(report: DriverReport): void
}

/** A driver is ready, has a problem, or has recovered from a problem. */
export type DriverReport =
  | {
      readonly is: 'ready'
      readonly driver: string
      readonly source: string
      readonly instances: readonly InstanceReport[]
    }
  | {
      readonly is: 'recovered'
      readonly driver: string
      readonly node: string | undefined
      readonly pid: number | undefined
    }
  | {
      readonly is: 'problem'
      /** The socket, or the command as the user wrote it. */
      readonly source: string
      readonly node: string | undefined
      readonly reason: string
      readonly output: readonly string[]
      readonly logFile: string | undefined
    }

/** A ready driver on one node. */
export interface InstanceReport extends ReadyInstance {
  readonly host: string | undefined
  readonly socket: string
  readonly role: DriverRole
  readonly pid: number | undefined
  readonly logFile: string | undefined
}

export interface RunningDrivers {
  readonly endpoints: readonly DriverEndpoint[]
  /** Must be called after the signal is aborted and the agents and controllers have stopped. Ends the processes. */
  stop(): Promise<void>
}

/**
 * Checks the socket paths, which depend only on the data directory, so that the server does not start with a path that is
 * unusable for drivers.
 */
export function checkDriverSources(
  sources: readonly DriverSource[],
  hosts: readonly Pick<DriverHost, 'name' | 'dir'>[],
): void {
  for (const { socket } of planInstances(sources, hosts)) asUsageError(() => parseSocketPath(socket), '--driver')
}

export function startDrivers(options: StartDriversOptions): RunningDrivers {
  const { sources, hosts, client, clock, random, log, signal } = options
  const stopProcesses = new AbortController()
  const writesOneAtATime = keyedLock()
  const runs: Promise<void>[] = []

  const plans = planInstances(sources, hosts)
  const reporters = sources.map((source) =>
    createReporter(describeSource(source), plans.filter((plan) => plan.source === source).length, options.onReport),
  )

  const endpoints = plans.map((plan): DriverEndpoint => {
    const { source, host, socket, directory, index } = plan
    const reporter = reporters[index]!
    const replacedListeners = new Set<() => void>()
    let setRole: (role: DriverRole) => void = () => {}
    const role = new Promise<DriverRole>((resolve) => {
      setRole = resolve
    })
    let isReady = false

    async function run(): Promise<void> {
      const driverLog = directory === undefined ? undefined : await prepareDirectory(directory)
      const logFile = driverLog?.path
      const node = host.agent ? host.name : undefined
      const process =
        source.is === 'command' && driverLog && directory !== undefined
          ? createDriverProcess({
              command: expandCommand(source.command, { socket, node: host.name, dir: join(directory, 'data') }),
              socket,
              mark: join(await realpath(directory), 'csi.sock'),
              recordFile: join(directory, 'process.json'),
              driverLog,
              clock,
              random,
              log,
              onExit({ reason, afterMs }) {
                const fields = { command: source.command, node, afterMs, reason, output: driverLog.quoteLines() }
                log.warn(fields, "the driver's process ended; restarting it")
                instance.reportExit(`the process ${reason}`)
              },
            })
          : undefined
      const instance = createDriverInstance({
        socket,
        agent: host.agent,
        ...(process ? { process } : {}),
        ...(driverLog ? { driverLog } : {}),
        writeObjects: (facts) =>
          writesOneAtATime('objects', () => writeDriverObjects({ facts, becomesDefault: index === 0, client })),
        onReady(readyInstance) {
          const instanceRole = chooseRole({ plan, readyInstance, hosts, isStoreShared: options.isStoreShared })
          setRole(instanceRole)
          if (isReady) for (const notify of replacedListeners) notify()
          isReady = true
          reporter.ready({ ...readyInstance, host: node, socket, role: instanceRole, pid: process?.pid, logFile }, plan)
        },
        onRecovered: ({ facts }) => options.onReport({ is: 'recovered', driver: facts.name, node, pid: process?.pid }),
        onProblem: ({ reason, output }) => reporter.problem({ node, reason, output, logFile }, plan),
        clock,
        log,
      })
      const processRun = process?.run(stopProcesses.signal)
      try {
        await Promise.all([instance.run(signal), processRun])
      } finally {
        await processRun?.catch(() => {}) // stopProcesses ends it, even if the instance failed
        await driverLog?.close()
      }
    }
    runs.push(
      run().catch((error: Error) =>
        log.error({ source: describeSource(source), node: host.name, reason: error.message }, 'cannot run a driver'),
      ),
    )
    return {
      address: socket,
      ...(host.agent ? { node: host.name } : {}),
      role,
      onReplaced(listener) {
        replacedListeners.add(listener)
        return () => void replacedListeners.delete(listener)
      },
    }
  })

  return {
    endpoints,
    async stop() {
      stopProcesses.abort()
      await Promise.all(runs)
    },
  }
}

interface InstancePlan {
  readonly source: DriverSource
  /** Index of the source. The class of the first source becomes the default class. */
  readonly index: number
  readonly host: DriverHost
  /** Whether this is the first host that runs the driver. */
  readonly isFirst: boolean
  readonly socket: string
  /** Directory of the driver. Undefined for a driver that the user has started. */
  readonly directory: string | undefined
}

function planInstances(sources: readonly DriverSource[], hosts: readonly DriverHost[]): InstancePlan[] {
  const names = nameCommands(sources.flatMap((source) => (source.is === 'command' ? [source.command] : [])))
  return sources.flatMap((source, index) => {
    const name = source.is === 'command' ? names.shift()! : ''
    const usedHosts = isPerNode(source) ? hosts : hosts.slice(0, 1)
    return usedHosts.map((host, number) => {
      const directory = source.is === 'command' ? join(host.dir, 'drivers', name) : undefined
      const socket = source.is === 'socket' ? expandSocket(source.path, host.name) : join(directory!, 'csi.sock')
      return { source, index, host, isFirst: number === 0, socket, directory }
    })
  })
}

async function prepareDirectory(directory: string) {
  await ensurePrivateDirectory(directory)
  await ensurePrivateDirectory(join(directory, 'data'))
  return openDriverLog(join(directory, 'log'))
}

/**
 * Decides whose volumes the driver serves. If several nodes run the driver and its topology contains the node, it serves the
 * volumes of its node. Otherwise the driver on the first node serves all volumes.
 */
export function chooseRole({
  plan: { source, host, isFirst },
  readyInstance: { node },
  hosts,
  isStoreShared,
}: {
  readonly plan: Pick<InstancePlan, 'source' | 'host' | 'isFirst'>
  readonly readyInstance: Pick<ReadyInstance, 'node'>
  readonly hosts: readonly unknown[]
  readonly isStoreShared: boolean
}): DriverRole {
  const isOneOfSeveral = isPerNode(source) && (hosts.length > 1 || isStoreShared)
  const isLocal =
    node !== undefined && Object.values(node.segments).some((value) => value === node.id || value === host.name)
  if (isOneOfSeveral && isLocal) return 'node'
  return isFirst ? 'cluster' : 'none'
}

/**
 * Reports all nodes on which a driver is ready in one report, once it is ready or has a problem on every node. Reports problems
 * and later changes immediately.
 */
function createReporter(source: string, count: number, onReport: (report: DriverReport) => void) {
  const instances = new Map<string, InstanceReport | undefined>() // by node; undefined if it has a problem
  const reportReady = (readyInstances: readonly InstanceReport[]) => {
    const [first] = readyInstances
    if (first) onReport({ is: 'ready', driver: first.facts.name, source, instances: readyInstances })
  }
  let isSettled = false
  const settle = () => {
    if (isSettled || instances.size < count) return
    isSettled = true
    const byHost = [...instances].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
    reportReady(byHost.map(([, instance]) => instance).filter((instance) => instance !== undefined))
  }
  return {
    ready(instance: InstanceReport, { host }: InstancePlan) {
      instances.set(host.name, instance)
      if (isSettled) reportReady([instance])
      else settle()
    },
    problem(
      problem: Pick<DriverReport & { is: 'problem' }, 'node' | 'reason' | 'output' | 'logFile'>,
      { host }: InstancePlan,
    ) {
      onReport({ is: 'problem', source, ...problem })
      if (!instances.has(host.name)) instances.set(host.name, undefined)
      settle()
    },
  }
}
