// Keeps the registered drivers in step with the sockets in the registration directory, as the kubelet does: what is gone
// is unregistered first, what is new is asked who it is, and every plugin is told how it went. A failure is tried again
// from the beginning, later and later. Drivers named by `--driver-socket` come without a registrar and are asked directly.
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
  /** Sockets of drivers that have no registrar. */
  readonly driverSockets: readonly string[]
  /** The name of the driver that answers there. */
  nameOf(driverSocket: string, signal: AbortSignal): Promise<string>
  readonly clock: Clock
  readonly log: Logger
}

/** While a plugin waits for its next try. */
const LOOK_MS = 1_000
/** Otherwise: most new sockets are told of, and only those in directories below are found so late. */
const CALM_LOOK_MS = 5_000
/** Where the directory tells of everything. */
const TOLD_LOOK_MS = 60_000
const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 122_000

/** One plugin: what is known of it, and when to try again. */
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

  async function look(signal: AbortSignal): Promise<void> {
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
  const calmLookMs = directory.tellsAll ? TOLD_LOOK_MS : CALM_LOOK_MS

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
      // Told once for each reason: a driver that is down is asked again for as long as it takes.
      if (because !== standing.because) log.warn({ socket: path, because }, 'a plugin could not be registered')
      standing.because = because
    }
  }

  /** The driver that was registered. */
  async function registerPlugin(socket: string, signal: AbortSignal): Promise<NonNullable<Standing['driver']>> {
    const info = await plugins.getInfo(socket)
    const driver = { name: info.name, endpoint: info.endpoint || socket }
    try {
      if (info.type !== CSI_PLUGIN)
        throw new Error(`its type is ${JSON.stringify(info.type)}, and only ${CSI_PLUGIN} is known here`)
      const version = bestVersion(info.supportedVersions)
      if (typeof version === 'string') throw new Error(version)
      await drivers.register({ ...driver, version }, signal)
    } catch (error) {
      const because = `${info.name || socket} is not registered: ${(error as Error).message}`
      await plugins.notify(socket, because).catch(() => {}) // it will be tried again, and told then
      throw new Error(because)
    }
    try {
      await plugins.notify(socket)
    } catch (error) {
      await drivers.unregister(driver) // it does not know, so it cannot be relied on
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
    /** Why each socket that is not registered is not. */
    problems: (): Record<string, string> =>
      Object.fromEntries(
        [...standings].flatMap(([path, { because }]) => (because === undefined ? [] : [[path, because]])),
      ),
    /** Looks at once, then again and again, and sooner when the directory changes. */
    async run(signal: AbortSignal): Promise<void> {
      let nap = new AbortController()
      const wake = () => nap.abort()
      const stopWatching = directory.watch(wake)
      signal.addEventListener('abort', wake, { once: true })
      while (!signal.aborted) {
        if (nap.signal.aborted) nap = new AbortController()
        await look(signal).catch((error: Error) => {
          log.warn({ because: error.message }, 'the registration directory could not be looked at')
        })
        if (!signal.aborted) await clock.sleep(isWaiting() ? LOOK_MS : calmLookMs, nap.signal).catch(() => {})
      }
      signal.removeEventListener('abort', wake)
      stopWatching()
    },
  }
}

const CSI_PLUGIN = 'CSIPlugin'
