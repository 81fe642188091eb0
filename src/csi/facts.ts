// Reads the name, version and capabilities of a driver.
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

/** Capabilities that proto/csi.proto does not define are omitted. */
export interface DriverFacts {
  readonly name: string
  readonly version: string
  readonly plugin: ReadonlySet<PluginService>
  readonly expansion: ReadonlySet<VolumeExpansion>
  readonly controller: ReadonlySet<ControllerCapability>
  readonly node: ReadonlySet<NodeCapability>
}

export async function readDriverFacts(driver: CsiDriver, signal?: AbortSignal): Promise<DriverFacts> {
  const options = { signal }
  const info = await driver.identity.getPluginInfo({}, options)
  const plugin = await undefinedIfUnimplemented(driver.identity.getPluginCapabilities({}, options))
  const controller = await undefinedIfUnimplemented(driver.controller.controllerGetCapabilities({}, options))
  const node = await undefinedIfUnimplemented(driver.node.nodeGetCapabilities({}, options))
  const pluginTypes = plugin?.capabilities.map(({ type }) => type) ?? []
  return {
    name: info.name,
    version: info.vendorVersion,
    plugin: namesOf(
      PluginCapability_Service_Type,
      pluginTypes.map((type) => (type.case === 'service' ? type.value.type : undefined)),
    ),
    expansion: namesOf(
      PluginCapability_VolumeExpansion_Type,
      pluginTypes.map((type) => (type.case === 'volumeExpansion' ? type.value.type : undefined)),
    ),
    controller: namesOf(
      ControllerServiceCapability_RPC_Type,
      controller?.capabilities.map(({ type }) => type.value?.type),
    ),
    node: namesOf(
      NodeServiceCapability_RPC_Type,
      node?.capabilities.map(({ type }) => type.value?.type),
    ),
  }
}

/** Returns undefined if the driver does not implement the call: a driver process may serve only some of the services. */
async function undefinedIfUnimplemented<T>(response: Promise<T>): Promise<T | undefined> {
  try {
    return await response
  } catch (error) {
    if (isUnimplemented(error)) return undefined
    throw error
  }
}

function namesOf<Enum extends object>(
  type: Enum,
  values: readonly (number | undefined)[] = [],
): ReadonlySet<Extract<keyof Enum, string>> {
  const byNumber = type as Readonly<Record<number, Extract<keyof Enum, string>>>
  return new Set(values.flatMap((value) => (value && byNumber[value] ? [byNumber[value]] : [])))
}
