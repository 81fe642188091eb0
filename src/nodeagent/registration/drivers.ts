// The drivers of this node: who is registered, how to reach each, and what it can do here. Registering asks the driver
// about the node and tells the cluster; only then can volumes of it be used.

import type { Logger } from '../../base/log.ts'
import {
  type CsiConnection,
  type CsiDriver,
  driverFacts,
  type NodeCapability,
  serializeCalls,
} from '../../csi/index.ts'
import type { DriverOnNode } from '../node/csi-node-writer.ts'
import { compareVersions, type Version } from './versions.ts'

export interface RegisteredDriver {
  readonly name: string
  readonly endpoint: string
  readonly version: Version
  readonly csi: CsiDriver
  /** What its node service can do. */
  readonly can: ReadonlySet<NodeCapability>
}

export interface Drivers {
  get(name: string): RegisteredDriver | undefined
  /** Why a driver of this name was not registered when it last asked for it. */
  refusalOf(name: string): string | undefined
  list(): RegisteredDriver[]
  register(
    driver: { readonly name: string; readonly endpoint: string; readonly version: Version },
    signal?: AbortSignal,
  ): Promise<void>
  /** Nothing if another driver has taken the name since. */
  unregister(driver: { readonly name: string; readonly endpoint: string }): Promise<void>
  /** Called after a driver came or went, and once all that were there at the start have been asked. */
  onChange(run: () => void): void
  /** All drivers that were there at the start have been asked: one that is missing now is not just late. */
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
/** As the API server demands of names in CSINode. */
const DRIVER_NAME = /^(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/

interface Known extends RegisteredDriver {
  readonly connection: CsiConnection
}

export function createDrivers({ connect, announce, withdraw, log }: DriversDeps): Drivers {
  const known = new Map<string, Known>()
  const refusals = new Map<string, string>() // at most one for each socket's driver
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
        const { node: can } = await driverFacts(connection, signal)
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
