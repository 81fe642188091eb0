// The registered drivers of this node, with their connections and capabilities. Registration calls NodeGetInfo and writes
// CSINode and labels (../node/csi-node-writer.ts) before volumes of the driver can be used.

import type { Logger } from '../../base/log.ts'
import {
  type CsiConnection,
  type CsiDriver,
  type NodeCapability,
  readDriverFacts,
  serializeCalls,
} from '../../csi/index.ts'
import type { DriverOnNode } from '../node/csi-node-writer.ts'
import { compareVersions, type Version } from './versions.ts'

export interface RegisteredDriver {
  readonly name: string
  readonly endpoint: string
  readonly version: Version
  readonly csi: CsiDriver
  /** Capabilities of its node service. */
  readonly can: ReadonlySet<NodeCapability>
}

export interface Drivers {
  get(name: string): RegisteredDriver | undefined
  /** Why the last registration of this name failed. */
  refusalOf(name: string): string | undefined
  list(): RegisteredDriver[]
  register(
    driver: { readonly name: string; readonly endpoint: string; readonly version: Version },
    signal?: AbortSignal,
  ): Promise<void>
  /** No effect if another endpoint is registered under the name. */
  unregister(driver: { readonly name: string; readonly endpoint: string }): Promise<void>
  /** Called after a driver was registered or unregistered, and once after the first scan. */
  onChange(run: () => void): void
  /** The first scan is complete: a missing driver is not just late. */
  readonly isSettled: boolean
  settle(): void
  close(): void
}

export interface DriversDeps {
  connect(endpoint: string): CsiConnection
  announce(driver: DriverOnNode): Promise<void>
  withdraw(name: string): Promise<void>
  readonly log: Logger
}

const NODE_GET_INFO_MS = 120_000
/** The API server's rule for driver names in CSINode. */
const DRIVER_NAME = /^(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/

interface Known extends RegisteredDriver {
  readonly connection: CsiConnection
}

export function createDrivers({ connect, announce, withdraw, log }: DriversDeps): Drivers {
  const known = new Map<string, Known>()
  const refusals = new Map<string, string>() // at most one per driver
  const listeners: (() => void)[] = []
  let isSettled = false

  return {
    get: (name) => known.get(name),
    refusalOf: (name) => refusals.get(name),
    list: () => [...known.values()],

    async register({ name, endpoint, version }, signal) {
      if (!DRIVER_NAME.test(name)) throw new Error(`${JSON.stringify(name)} cannot be the name of a CSI driver`)
      const other = known.get(name)
      if (other && compareVersions(version, other.version) <= 0) {
        throw new Error(
          `a driver "${name}" is registered on this node already, at ${other.endpoint} with version ` +
            `${other.version.join('.')}: only a higher version may take its place. Stop that one first`,
        )
      }
      const connection = connect(endpoint)
      try {
        const { node: can } = await readDriverFacts(connection, signal)
        const info = await connection.node.nodeGetInfo(
          {},
          { timeoutMs: NODE_GET_INFO_MS, ...(signal ? { signal } : {}) },
        )
        if (info.nodeId === '') throw new Error(`the driver "${name}" does not say which node this is (empty node_id)`)
        await announce({
          name,
          nodeId: info.nodeId,
          topology: info.accessibleTopology?.segments ?? {},
          maxVolumes: Number(info.maxVolumesPerNode),
        })
        other?.connection.close()
        known.set(name, { name, endpoint, version, can, connection, csi: serializeCalls(connection) })
        refusals.delete(name)
      } catch (error) {
        connection.close()
        if (!other) refusals.set(name, (error as Error).message)
        throw error
      }
      log.info({ driver: name, endpoint }, 'registered a CSI driver')
      for (const run of listeners) run()
    },

    async unregister({ name, endpoint }) {
      const driver = known.get(name)
      if (driver?.endpoint !== endpoint) return
      await withdraw(name)
      known.delete(name)
      refusals.delete(name)
      driver.connection.close()
      log.info({ driver: name }, 'unregistered a CSI driver')
      for (const run of listeners) run()
    },

    get isSettled() {
      return isSettled
    },
    settle() {
      if (isSettled) return
      isSettled = true
      for (const run of listeners) run()
    },
    onChange: (run) => void listeners.push(run),
    close() {
      for (const { connection } of known.values()) connection.close()
      known.clear()
    },
  }
}
