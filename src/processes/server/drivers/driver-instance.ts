// Prepares one driver on one node of `stowage up`: waits for its socket, inspects it, writes its objects and registers it with
// the node agent. Repeats this when the driver is replaced, and retries every failure.
import type { Clock } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import { type CsiConnection, connectDriver, type DriverFacts } from '../../../csi/index.ts'
import type { NodeAgent } from '../../../nodeagent/index.ts'
import type { DriverLog } from './driver-log.ts'
import type { DriverProcess } from './driver-process.ts'
import {
  INSPECT_TIMEOUT_MS,
  type InspectedDriver,
  inspectDriver,
  NotListeningError,
  readSocketId,
} from './inspect-driver.ts'
import type { DriverObjects } from './write-objects.ts'

export interface DriverInstanceOptions {
  readonly socket: string
  /** The node agent. Undefined if this process runs no nodes. */
  readonly agent: Promise<Pick<NodeAgent, 'registerDriver' | 'unregisterDriver'>> | undefined
  /** Absent for a driver that the user has started. */
  readonly process?: Pick<DriverProcess, 'pid'>
  readonly driverLog?: Pick<DriverLog, 'path' | 'quoteLines'>
  /** Creates and updates the driver's CSIDriver and StorageClass. */
  writeObjects(facts: DriverFacts): Promise<DriverObjects>
  /** Called when the driver is ready, and again when its name, version, capabilities or node info have changed. */
  onReady(driver: ReadyInstance): void
  /** Called when the same driver is ready after a problem. */
  onRecovered(driver: InspectedDriver): void
  /** Called for each problem. A problem that persists is reported once. */
  onProblem(problem: InstanceProblem): void
  readonly clock: Clock
  readonly log: Logger
}

export interface ReadyInstance extends InspectedDriver {
  readonly objects: DriverObjects
}

export interface InstanceProblem {
  readonly reason: string
  /** The first and last lines of the driver's output. */
  readonly output: readonly string[]
}

/** A driver that is not ready is inspected again after an interval that grows from the minimum to the maximum. */
const POLL_MS_MIN = 50
const POLL_MS_MAX = 1_000
/** A command that has not created its socket after this time is reported as a problem; the wait continues. */
const START_MS_MAX = 5_000
/** Interval at which a ready driver is checked for a recreated socket. */
const SOCKET_CHECK_MS = 500
/** Interval at which a ready driver is inspected, to detect that it no longer responds. */
const PROBE_INTERVAL_MS = 10_000

export interface DriverInstance {
  run(signal: AbortSignal): Promise<void>
  /** Reports that the process has exited. */
  reportExit(reason: string): void
}

export function createDriverInstance(options: DriverInstanceOptions): DriverInstance {
  const { socket, agent, clock, log, driverLog } = options
  let reportedReason: string | undefined
  let registration: { readonly name: string; readonly signature: string } | undefined
  let readySignature: string | undefined

  function report(reason: string): void {
    if (reason === reportedReason) return
    reportedReason = reason
    options.onProblem({ reason, output: driverLog?.quoteLines() ?? [] })
  }

  async function withConnection<T>(use: (connection: CsiConnection) => Promise<T>): Promise<T> {
    const connection = connectDriver({ address: socket, clock, log, timeoutMs: INSPECT_TIMEOUT_MS })
    try {
      return await use(connection)
    } finally {
      connection.close()
    }
  }

  async function prepare(signal: AbortSignal): Promise<void> {
    const inspectedDriver = await withConnection((connection) => inspectDriver(connection, socket, signal))
    const objects = await options.writeObjects(inspectedDriver.facts)
    await register(inspectedDriver, signal)
    const signature = signatureOf(inspectedDriver)
    if (signature !== readySignature) options.onReady({ ...inspectedDriver, objects })
    else if (reportedReason !== undefined) options.onRecovered(inspectedDriver)
    reportedReason = undefined
    readySignature = signature
  }

  /** Registers a driver that is new or has changed. A driver that was only restarted stays registered. */
  async function register(inspectedDriver: InspectedDriver, signal: AbortSignal): Promise<void> {
    const signature = signatureOf(inspectedDriver)
    if (!agent || registration?.signature === signature) return
    const { registerDriver, unregisterDriver } = await agent
    if (registration) await unregisterDriver({ name: registration.name, endpoint: socket })
    registration = undefined
    if (!inspectedDriver.node) return
    const { name } = inspectedDriver.facts
    await registerDriver({ name, endpoint: socket }, signal).catch((error: Error) => {
      throw new Error(`the node cannot register the driver: ${error.message}`)
    })
    registration = { name, signature }
  }

  /** Resolves when the socket is recreated. Throws if the driver no longer responds. */
  async function watchReady(socketId: string, signal: AbortSignal): Promise<void> {
    let lastProbeMs = clock.monotonicMs()
    for (;;) {
      await clock.sleep(SOCKET_CHECK_MS, signal)
      if ((await readSocketId(socket)) !== socketId) return
      if (clock.monotonicMs() - lastProbeMs < PROBE_INTERVAL_MS) continue
      await withConnection((connection) => inspectDriver(connection, socket, signal))
      lastProbeMs = clock.monotonicMs()
    }
  }

  return {
    reportExit: report,
    async run(signal) {
      let waitingSinceMs = clock.monotonicMs()
      let pollMs = POLL_MS_MIN
      let lastPid: number | undefined
      while (!signal.aborted) {
        try {
          const socketId = await readSocketId(socket)
          await prepare(signal)
          pollMs = POLL_MS_MIN
          await watchReady(socketId, signal)
        } catch (error) {
          if (signal.aborted) return
          if (options.process?.pid !== lastPid) {
            lastPid = options.process?.pid
            waitingSinceMs = clock.monotonicMs()
            pollMs = POLL_MS_MIN
          }
          reportFailure(error as Error, clock.monotonicMs() - waitingSinceMs)
          await clock.sleep(pollMs, signal).catch(() => {}) // rejects when the signal is aborted
          pollMs = Math.min(pollMs * 1.2, POLL_MS_MAX)
        }
      }
    },
  }

  /**
   * Reports a failure, unless the process is starting and has no socket yet, or no process runs, because its exit was reported.
   */
  function reportFailure(error: Error, waitedMs: number): void {
    const { process } = options
    const isStarting = process && error instanceof NotListeningError && waitedMs < START_MS_MAX
    if (!isStarting && (!process || process.pid !== undefined)) report(error.message)
  }
}

/** Returns a signature that changes if the driver must be registered again or its controllers restarted. */
function signatureOf({ facts, node }: InspectedDriver): string {
  const { name, version, plugin, expansion, controller, node: nodeCapabilities } = facts
  const sets = [plugin, expansion, controller, nodeCapabilities].map((set) => [...set].sort())
  return JSON.stringify([name, version, sets, node])
}
