// The registered drivers of this node, with their connections and capabilities. Registration calls NodeGetInfo and writes
// CSINode and labels (../node/csi-node-writer.ts).

import { keyedLock } from '../../base/keyed-lock.ts'
import type { Logger } from '../../base/log.ts'
import {
  type CsiConnection,
  type CsiDriver,
  type NodeCapability,
  readDriverFacts,
  serializeCalls,
} from '../../csi/index.ts'
import type { DriverNodeInfo } from '../node/csi-node-writer.ts'
import { compareVersions, type Version } from './versions.ts'

export interface RegisteredDriver {
  readonly name: string
  readonly endpoint: string
  readonly version: Version
  readonly csi: CsiDriver
  /** The node service's capabilities. */
  readonly capabilities: ReadonlySet<NodeCapability>
}

interface DriverEndpoint {
  readonly name: string
  readonly endpoint: string
}

interface NewDriver extends DriverEndpoint {
  readonly version: Version
}

export interface Drivers {
  get(name: string): RegisteredDriver | undefined
  /** Returns the error of the last attempt to register a driver of this name, if none is registered. */
  registrationErrorOf(name: string): string | undefined
  list(): RegisteredDriver[]
  register(driver: NewDriver, signal?: AbortSignal): Promise<void>
  /** Also forgets a driver that was rejected. Has no effect if another endpoint is registered under this name. */
  unregister(driver: DriverEndpoint): Promise<void>
  /** Registers a function that is called after a driver was registered or unregistered, and after the first scan. */
  onChange(listener: () => void): void
  /** Whether the first scan is complete. Before that, an unregistered driver may still be found. */
  readonly isSettled: boolean
  settle(): void
  close(): void
}

export interface DriversDeps {
  connect(endpoint: string): CsiConnection
  addToCsiNode(driver: DriverNodeInfo): Promise<void>
  removeFromCsiNode(name: string): Promise<void>
  /** Removes the conflict of a rejected driver from the Node. */
  clearConflict(name: string): Promise<void>
  readonly log: Logger
}

const NODE_GET_INFO_TIMEOUT_MS = 120_000
/** The validation rule of the API server for driver names in CSINode. */
const DRIVER_NAME = /^(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/

interface ConnectedDriver extends RegisteredDriver {
  readonly connection: CsiConnection
}

export function createDrivers({ connect, addToCsiNode, removeFromCsiNode, clearConflict, log }: DriversDeps): Drivers {
  const driversByName = new Map<string, ConnectedDriver>()
  const registrationErrors = new Map<string, string>() // by driver name
  const listeners: (() => void)[] = []
  // Two drivers with one name that register at the same time would both find the name unused.
  const registrationLock = keyedLock()
  let isSettled = false

  async function register({ name, endpoint, version }: NewDriver, signal?: AbortSignal): Promise<void> {
    if (!DRIVER_NAME.test(name)) throw new Error(`${JSON.stringify(name)} is not a valid CSI driver name`)
    const existingDriver = driversByName.get(name)
    if (existingDriver && compareVersions(version, existingDriver.version) <= 0) {
      throw new Error(
        `a driver "${name}" is already registered on this node at ${existingDriver.endpoint} with version ` +
          `${existingDriver.version.join('.')}; only a higher version can replace it. Stop the other driver first`,
      )
    }
    const connection = connect(endpoint)
    try {
      const { node: capabilities } = await readDriverFacts(connection, signal)
      const info = await connection.node.nodeGetInfo(
        {},
        { timeoutMs: NODE_GET_INFO_TIMEOUT_MS, ...(signal ? { signal } : {}) },
      )
      if (info.nodeId === '') throw new Error(`the driver "${name}" returned an empty node_id`)
      await addToCsiNode({
        name,
        nodeId: info.nodeId,
        topology: info.accessibleTopology?.segments ?? {},
        maxVolumes: Number(info.maxVolumesPerNode),
      })
      existingDriver?.connection.close()
      driversByName.set(name, { name, endpoint, version, capabilities, connection, csi: serializeCalls(connection) })
      registrationErrors.delete(name)
    } catch (error) {
      connection.close()
      if (!existingDriver) registrationErrors.set(name, (error as Error).message)
      throw error
    }
    log.info({ driver: name, endpoint }, 'registered a CSI driver')
    for (const notify of listeners) notify()
  }

  async function unregister({ name, endpoint }: DriverEndpoint): Promise<void> {
    const driver = driversByName.get(name)
    if (!driver && registrationErrors.has(name)) {
      await clearConflict(name)
      registrationErrors.delete(name)
    }
    if (driver?.endpoint !== endpoint) return
    await removeFromCsiNode(name)
    driversByName.delete(name)
    registrationErrors.delete(name)
    driver.connection.close()
    log.info({ driver: name }, 'unregistered a CSI driver')
    for (const notify of listeners) notify()
  }

  return {
    get: (name) => driversByName.get(name),
    registrationErrorOf: (name) => registrationErrors.get(name),
    list: () => [...driversByName.values()],

    register: (driver, signal) => registrationLock(driver.name, () => register(driver, signal)),
    unregister: (driver) => registrationLock(driver.name, () => unregister(driver)),

    get isSettled() {
      return isSettled
    },
    settle() {
      if (isSettled) return
      isSettled = true
      for (const notify of listeners) notify()
    },
    onChange: (listener) => void listeners.push(listener),
    close() {
      for (const { connection } of driversByName.values()) connection.close()
      driversByName.clear()
    },
  }
}
