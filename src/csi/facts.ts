// Name, version and capabilities of a driver. Read once, when the driver is ready: all instances of one version return
// the same.
import type { CsiDriver } from './driver.ts'
import { isUnimplemented } from './errors.ts'
import {
  ControllerServiceCapability_RPC_Type,
  NodeServiceCapability_RPC_Type,
  PluginCapability_Service_Type,
  PluginCapability_VolumeExpansion_Type,
} from './gen/csi_pb.js'

export type PluginService = keyof typeof PluginCapability_Service_Type
export type VolumeExpansion = keyof typeof PluginCapability_VolumeExpansion_Type
export type ControllerCapability = keyof typeof ControllerServiceCapability_RPC_Type
export type NodeCapability = keyof typeof NodeServiceCapability_RPC_Type

/** Capabilities that our copy of csi.proto does not know are omitted. */
export interface DriverFacts {
  readonly name: string
  readonly version: string
  readonly plugin: ReadonlySet<PluginService>
  readonly expansion: ReadonlySet<VolumeExpansion>
  readonly controller: ReadonlySet<ControllerCapability>
  readonly node: ReadonlySet<NodeCapability>
}

export async function driverFacts(driver: CsiDriver, signal?: AbortSignal): Promise<DriverFacts> {
  const options = { signal }
  const info = await driver.identity.getPluginInfo({}, options)
  const plugin = await unlessUnimplemented(driver.identity.getPluginCapabilities({}, options))
  const controller = await unlessUnimplemented(driver.controller.controllerGetCapabilities({}, options))
  const node = await unlessUnimplemented(driver.node.nodeGetCapabilities({}, options))
  const plugins = plugin?.capabilities.map(({ type }) => type) ?? []
  return {
    name: info.name,
    version: info.vendorVersion,
    plugin: names(
      PluginCapability_Service_Type,
      plugins.map((type) => (type.case === 'service' ? type.value.type : undefined)),
    ),
    expansion: names(
      PluginCapability_VolumeExpansion_Type,
      plugins.map((type) => (type.case === 'volumeExpansion' ? type.value.type : undefined)),
    ),
    controller: names(
      ControllerServiceCapability_RPC_Type,
      controller?.capabilities.map(({ type }) => type.value?.type),
    ),
    node: names(
      NodeServiceCapability_RPC_Type,
      node?.capabilities.map(({ type }) => type.value?.type),
    ),
  }
}

/** A driver process may serve only some of the services. */
async function unlessUnimplemented<T>(reply: Promise<T>): Promise<T | undefined> {
  try {
    return await reply
  } catch (error) {
    if (isUnimplemented(error)) return undefined
    throw error
  }
}

function names<Enum extends object>(
  type: Enum,
  values: readonly (number | undefined)[] = [],
): ReadonlySet<Extract<keyof Enum, string>> {
  const byNumber = type as Readonly<Record<number, Extract<keyof Enum, string>>>
  return new Set(values.flatMap((value) => (value && byNumber[value] ? [byNumber[value]] : [])))
}
