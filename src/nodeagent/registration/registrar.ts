// Registers the drivers whose sockets are in the registration directory, as the kubelet does: unregisters removed sockets,
// calls GetInfo on new ones, and notifies each plugin of the result. Retries failures with backoff. Drivers named by
// `--driver-socket` have no node-driver-registrar and are registered without these calls.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Drivers } from './drivers.ts'
import type { PluginCalls } from './plugin-calls.ts'
import type { PluginDirectory, PluginSocket } from './plugin-directory.ts'
import { bestVersion, type Version } from './versions.ts'

export interface RegistrarDeps {
  readonly directory: PluginDirectory
  readonly plugins: PluginCalls
  readonly drivers: Drivers
  /** The sockets of drivers without node-driver-registrar. */
  readonly driverSockets: readonly string[]
  /** Returns the name of the driver at a socket from GetPluginInfo. */
  readDriverName(driverSocket: string, signal: AbortSignal): Promise<string>
  readonly clock: Clock
  readonly log: Logger
}

/** Scan interval while a plugin waits for its retry. */
const RETRY_SCAN_INTERVAL_MS = 1_000
/** Scan interval otherwise. fs.watch usually triggers an earlier scan. */
const SCAN_INTERVAL_MS = 5_000
/** Scan interval if the directory's watch reports every change. */
const WATCHED_SCAN_INTERVAL_MS = 60_000
const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 122_000

/** The version of a driver that is registered without the registration protocol. */
export const DIRECT_VERSION: Version = [1, 0, 0]

interface DriverEndpoint {
  readonly name: string
  readonly endpoint: string
}

/** The state of one plugin. */
interface PluginState {
  readonly id: string
  /** The driver that the plugin knows to be registered. */
  driver?: DriverEndpoint
  /** A driver that is registered although its plugin could not be notified. It is unregistered before the next attempt. */
  unnotifiedDriver?: DriverEndpoint
  /** The driver of the last failed registration. */
  rejectedDriver?: DriverEndpoint
  /** Whether the socket was removed and its driver could not be unregistered yet. */
  isRemoved?: boolean
  failures: number
  dueMs: number
  message?: string
}

export function createRegistrar(deps: RegistrarDeps) {
  const { directory, plugins, drivers, driverSockets, readDriverName, clock, log } = deps
  const states = new Map<string, PluginState>()

  async function scan(signal: AbortSignal): Promise<void> {
    const socketsByPath = new Map((await directory.list()).map((socket) => [socket.path, socket]))
    for (const [path, state] of [...states]) {
      if (driverSockets.includes(path) || socketsByPath.get(path)?.id === state.id) continue
      await tryRemove(path, state, signal)
    }
    const directSockets = driverSockets.map((path): PluginSocket => ({ path, id: path }))
    await Promise.all([...directSockets, ...socketsByPath.values()].map((socket) => tryRegister(socket, signal)))
    drivers.settle()
  }

  const isRetryPending = (): boolean =>
    [...states.values()].some(({ driver, message }) => driver === undefined || message !== undefined)
  const scanIntervalMs = directory.watchesAll ? WATCHED_SCAN_INTERVAL_MS : SCAN_INTERVAL_MS

  /** Forgets a removed or recreated socket. If its driver cannot be unregistered, the state stays and a later scan retries. */
  async function tryRemove(path: string, state: PluginState, signal: AbortSignal): Promise<void> {
    const knownDriver = state.driver ?? state.unnotifiedDriver ?? state.rejectedDriver
    if (knownDriver === undefined) return void states.delete(path)
    if (state.isRemoved && clock.monotonicMs() < state.dueMs) return
    state.isRemoved = true
    try {
      await drivers.unregister(knownDriver)
      states.delete(path)
    } catch (error) {
      if (!signal.aborted)
        recordFailure(path, state, error as Error, 'cannot unregister the driver of a removed socket; retrying')
    }
  }

  async function tryRegister({ path, id }: PluginSocket, signal: AbortSignal): Promise<void> {
    const state: PluginState = states.get(path) ?? { id, failures: 0, dueMs: 0 }
    states.set(path, state)
    if (state.id !== id || state.driver !== undefined || clock.monotonicMs() < state.dueMs) return
    try {
      const registeredDriver = driverSockets.includes(path)
        ? await registerDirectly(path, signal)
        : await registerPlugin(path, state, signal)
      Object.assign(state, { driver: registeredDriver, rejectedDriver: undefined, failures: 0, message: undefined })
    } catch (error) {
      if (!signal.aborted) recordFailure(path, state, error as Error, 'cannot register a plugin; retrying')
    }
  }

  function recordFailure(path: string, state: PluginState, { message }: Error, logMessage: string): void {
    state.dueMs = clock.monotonicMs() + Math.min(RETRY_MS_MIN * 2 ** state.failures++, RETRY_MS_MAX)
    // Do not log the same reason again, because a driver that is down is retried indefinitely.
    if (message !== state.message) log.warn({ socket: path, reason: message }, logMessage)
    state.message = message
  }

  /** Returns the registered driver. */
  async function registerPlugin(socket: string, state: PluginState, signal: AbortSignal): Promise<DriverEndpoint> {
    await unregisterUnnotified(state)
    const info = await plugins.getInfo(socket)
    const driver = { name: info.name, endpoint: info.endpoint || socket }
    try {
      if (info.type !== CSI_PLUGIN)
        throw new Error(
          `the plugin type ${JSON.stringify(info.type)} is not supported; only ${CSI_PLUGIN} is supported`,
        )
      const version = bestVersion(info.supportedVersions)
      if (typeof version === 'string') throw new Error(version)
      await drivers.register({ ...driver, version }, signal)
    } catch (error) {
      state.rejectedDriver = driver
      const message = `${info.name || socket} is not registered: ${(error as Error).message}`
      await plugins.notify(socket, message).catch(() => {}) // the retry notifies the plugin again
      throw new Error(message)
    }
    try {
      await plugins.notify(socket)
    } catch (error) {
      state.unnotifiedDriver = driver
      await unregisterUnnotified(state)
      throw error
    }
    return driver
  }

  async function unregisterUnnotified(state: PluginState): Promise<void> {
    if (state.unnotifiedDriver === undefined) return
    await drivers.unregister(state.unnotifiedDriver)
    state.unnotifiedDriver = undefined
  }

  async function registerDirectly(socket: string, signal: AbortSignal): Promise<DriverEndpoint> {
    const driver = { name: await readDriverName(socket, signal), endpoint: socket }
    await drivers.register({ ...driver, version: DIRECT_VERSION }, signal)
    return driver
  }

  return {
    /** Returns the last error of each socket that could not be registered or unregistered. */
    problems: (): Record<string, string> =>
      Object.fromEntries(
        [...states].flatMap(([path, { message }]) => (message === undefined ? [] : [[path, message]])),
      ),
    /** Scans immediately, periodically, and when the directory changes. */
    async run(signal: AbortSignal): Promise<void> {
      let sleepAbort = new AbortController()
      const wake = () => sleepAbort.abort()
      const stopWatching = directory.watch(wake)
      signal.addEventListener('abort', wake, { once: true })
      while (!signal.aborted) {
        if (sleepAbort.signal.aborted) sleepAbort = new AbortController()
        await scan(signal).catch((error: Error) => {
          // The directory cannot be read.
          log.warn({ reason: error.message }, 'scanning the registration directory failed; retrying')
        })
        if (!signal.aborted)
          await clock
            .sleep(isRetryPending() ? RETRY_SCAN_INTERVAL_MS : scanIntervalMs, sleepAbort.signal)
            .catch(() => {})
      }
      signal.removeEventListener('abort', wake)
      stopWatching()
    },
  }
}

const CSI_PLUGIN = 'CSIPlugin'
