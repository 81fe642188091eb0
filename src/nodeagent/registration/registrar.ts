// Registers the drivers whose sockets are in the registration directory, as the kubelet does: unregisters removed sockets,
// calls GetInfo on new ones, and notifies each plugin of the result. A failure is retried with backoff. Drivers named by
// `--driver-socket` have no registrar and are called directly.
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import type { Drivers } from './drivers.ts'
import type { PluginCalls } from './plugin-calls.ts'
import type { FoundSocket, PluginDirectory } from './plugin-directory.ts'
import { bestVersion } from './versions.ts'

export interface RegistrarDeps {
  readonly directory: PluginDirectory
  readonly plugins: PluginCalls
  readonly drivers: Drivers
  /** Sockets of drivers without node-driver-registrar. */
  readonly driverSockets: readonly string[]
  /** GetPluginInfo of the driver at a socket. */
  nameOf(driverSocket: string, signal: AbortSignal): Promise<string>
  readonly clock: Clock
  readonly log: Logger
}

/** Scan interval while a plugin waits for its retry. */
const RETRY_SCAN_MS = 1_000
/** Scan interval otherwise; fs.watch reports most new sockets earlier. */
const SCAN_MS = 5_000
/** Scan interval if the directory's watch reports every change. */
const WATCHED_SCAN_MS = 60_000
const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 122_000

/** The state of one plugin, and when it is retried. */
interface Standing {
  readonly id: string
  driver?: { readonly name: string; readonly endpoint: string }
  failures: number
  dueMs: number
  because?: string
}

export function createRegistrar(deps: RegistrarDeps) {
  const { directory, plugins, drivers, driverSockets, nameOf, clock, log } = deps
  const standings = new Map<string, Standing>()

  async function scan(signal: AbortSignal): Promise<void> {
    const found = new Map((await directory.list()).map((socket) => [socket.path, socket]))
    for (const [path, { id, driver }] of [...standings]) {
      if (driverSockets.includes(path) || found.get(path)?.id === id) continue
      if (driver !== undefined) await drivers.unregister(driver)
      standings.delete(path)
    }
    const direct = driverSockets.map((path): FoundSocket => ({ path, id: path }))
    await Promise.all([...direct, ...found.values()].map((socket) => tryRegister(socket, signal)))
    drivers.settle()
  }

  const isWaiting = (): boolean => [...standings.values()].some(({ driver }) => driver === undefined)
  const scanMs = directory.watchesAll ? WATCHED_SCAN_MS : SCAN_MS

  async function tryRegister({ path, id }: FoundSocket, signal: AbortSignal): Promise<void> {
    const standing = standings.get(path) ?? { id, failures: 0, dueMs: 0 }
    standings.set(path, standing)
    if (standing.driver !== undefined || clock.monotonicMs() < standing.dueMs) return
    try {
      const register = driverSockets.includes(path) ? registerDirectly : registerPlugin
      const registered = await register(path, signal)
      Object.assign(standing, { driver: registered, failures: 0, because: undefined })
    } catch (error) {
      if (signal.aborted) return
      const because = (error as Error).message
      standing.dueMs = clock.monotonicMs() + Math.min(FIRST_RETRY_MS * 2 ** standing.failures++, LAST_RETRY_MS)
      // Logged once per reason: a driver that is down is retried for as long as it takes.
      if (because !== standing.because) log.warn({ socket: path, because }, 'cannot register a plugin; retrying')
      standing.because = because
    }
  }

  /** Returns the registered driver. */
  async function registerPlugin(socket: string, signal: AbortSignal): Promise<NonNullable<Standing['driver']>> {
    const info = await plugins.getInfo(socket)
    const driver = { name: info.name, endpoint: info.endpoint || socket }
    try {
      if (info.type !== CSI_PLUGIN)
        throw new Error(`its type is ${JSON.stringify(info.type)}; only ${CSI_PLUGIN} is supported`)
      const version = bestVersion(info.supportedVersions)
      if (typeof version === 'string') throw new Error(version)
      await drivers.register({ ...driver, version }, signal)
    } catch (error) {
      const because = `${info.name || socket} is not registered: ${(error as Error).message}`
      await plugins.notify(socket, because).catch(() => {}) // the retry notifies it again
      throw new Error(because)
    }
    try {
      await plugins.notify(socket)
    } catch (error) {
      await drivers.unregister(driver) // the plugin does not know that it is registered
      throw error
    }
    return driver
  }

  async function registerDirectly(socket: string, signal: AbortSignal): Promise<NonNullable<Standing['driver']>> {
    const driver = { name: await nameOf(socket, signal), endpoint: socket }
    await drivers.register({ ...driver, version: [1, 0, 0] }, signal)
    return driver
  }

  return {
    /** Sockets that are not registered, with the reason. */
    problems: (): Record<string, string> =>
      Object.fromEntries(
        [...standings].flatMap(([path, { because }]) => (because === undefined ? [] : [[path, because]])),
      ),
    /** Scans at once, then periodically and when the directory changes. */
    async run(signal: AbortSignal): Promise<void> {
      let nap = new AbortController()
      const wake = () => nap.abort()
      const stopWatching = directory.watch(wake)
      signal.addEventListener('abort', wake, { once: true })
      while (!signal.aborted) {
        if (nap.signal.aborted) nap = new AbortController()
        await scan(signal).catch((error: Error) => {
          log.warn({ because: error.message }, 'cannot read the registration directory; retrying')
        })
        if (!signal.aborted) await clock.sleep(isWaiting() ? RETRY_SCAN_MS : scanMs, nap.signal).catch(() => {})
      }
      signal.removeEventListener('abort', wake)
      stopWatching()
    },
  }
}

const CSI_PLUGIN = 'CSIPlugin'
